"""Kernels, the inner loops of words and vectors: arrays enter, candidates and scores leave."""
