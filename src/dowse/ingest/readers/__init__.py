"""Readers of prose and data: the bytes of one file enter, a Document with chunks leaves."""
