"""Explanations: a finished or replayed query enters; why a hit ranks where it does, or is missing, leaves.

Imports the stages it explains. It never changes a ranking.
"""
