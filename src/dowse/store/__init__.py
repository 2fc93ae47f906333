"""Chunks are kept and found again."""
