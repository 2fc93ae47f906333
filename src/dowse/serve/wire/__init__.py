"""Wire format: results as JSON, requests from JSON, URLs and flags.

One table maps errors to exit codes and HTTP statuses. Imports core values only.
"""
