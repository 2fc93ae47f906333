"""Chunking: a text and its structure enter; chunks of about 256 tokens with parents leave.

Shared by all readers. Imports core values and `sources.kinds` only.
"""
