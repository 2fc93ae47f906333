"""Privacy: masked secrets and pseudonyms for people; a document enters and a cleaned one leaves.

Runs before anything is stored. Imports `sources` for the people that git knows.
"""
