"""The store: documents, chunks, edges and vectors enter; legs, rows and graphs of one snapshot leave.

`embedded` keeps an index in one folder, `memory` is the oracle. Imports core values and ports.
"""
