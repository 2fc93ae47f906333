"""MCP server for agents: tools with text and structured answers within a token budget."""
