"""Look-ups that rank nothing: status, outlines, symbols, references and related chunks."""
