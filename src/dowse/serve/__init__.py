"""A result leaves the house: command line first, HTTP and MCP later."""
