"""Links: edges from stored documents to the symbols, files, services and threads they mention.

A reference that could mean several chunks makes no edge. Imports core values and ports.
"""
