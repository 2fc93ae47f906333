"""Chunking: a text and its structure enter; chunks of about 256 tokens with parents leave."""
