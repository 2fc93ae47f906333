"""Ingestion: paths enter; documents, edges and vectors go to the store, and a report leaves.

`pipeline` is the path: find files in `sources`, read them in `reading`, cut them in `readers` and its siblings,
mask them in `privacy`, link them in `links` and `services`. Imports core values and ports only.
"""
