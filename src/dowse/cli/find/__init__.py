"""Commands that find things: search, explain, show, symbols, outline, related, services."""
