"""MCP server for agents: tools with text and structured answers within a token budget.

Imports `serve.wire`, `serve.backend` and the MCP SDK.
"""
