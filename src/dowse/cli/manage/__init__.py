"""Commands that run Dowse: index, link, status, doctor, serve, mcp, models, config, demo."""
