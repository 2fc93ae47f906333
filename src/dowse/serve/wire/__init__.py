"""Wire format: results as JSON, requests from JSON, URLs and flags."""
