"""The query plan: a request enters; its validated fields, profile, query type, mentions and variants leave.

Imports core values only, and reads nothing but the language model it is given.
"""
