"""Segments, the derived search structures: rows of the truth enter, memory-mapped arrays leave.

Columns for filters, forward and inverted word indexes, vectors. Imports `store.kernels` and `store.files`.
"""
