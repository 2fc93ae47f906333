"""Code reading: source text and a grammar enter; a chunk for each symbol, with calls, leaves.

Where no grammar is installed, layout decides where to cut. Imports `chunking` and tree-sitter.
"""
