"""PDF reading: the bytes of a paper enter; headings, paragraphs and tables in reading order leave.

Imports `chunking` and pypdfium2.
"""
