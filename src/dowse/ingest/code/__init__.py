"""Code reading: source text and a grammar enter; a chunk for each symbol, with calls, leaves."""
