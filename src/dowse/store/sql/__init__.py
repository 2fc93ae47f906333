"""SQLite, the source of truth: rows enter in one transaction a document, rows leave."""
