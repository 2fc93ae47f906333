"""Evaluation: a collection with judgments enters; metrics, comparisons and tuned settings leave.

Judges the engine from outside, through its public calls. Imports the engine and below.
"""
