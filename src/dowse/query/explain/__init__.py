"""Explanations: a finished or replayed query enters; why a hit ranks where it does, or is missing, leaves."""
