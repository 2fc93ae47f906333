"""Web page: HTML for each URL; it works without JavaScript."""
