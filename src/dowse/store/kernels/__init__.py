"""Kernels, the inner loops of words and vectors: arrays enter, candidates and scores leave.

numpy always works; the version in C gives the same digits faster. Imports numpy and no other part of the store.
"""
