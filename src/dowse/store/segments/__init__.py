"""Segments, the derived search structures: rows of the truth enter, memory-mapped arrays leave."""
