"""SQLite, the source of truth: rows enter in one transaction a document, rows leave.

Everything else on disk is derived from these tables. Imports the core values and `store.files`.
"""
