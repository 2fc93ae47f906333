"""Readers of prose and data: the bytes of one file enter, a Document with chunks leaves.

`registry` names all readers, those of `code`, `pdf`, `manifests` and other packages included. Imports `chunking`.
Each reader is a module of its own, however short: `registry` loads it when the first such file comes.
"""
