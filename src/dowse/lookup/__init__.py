"""Look-ups that rank nothing: status, outlines, symbols, references and related chunks.

Joins ingest, store and query for commands that need more than one of them, so it may import all three.
"""
