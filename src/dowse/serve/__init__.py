"""Servers: HTTP, web page and MCP over one backend and one wire format.

`backend` is the one object behind all of them. Imports the engine and below; only `cli` imports it.
"""
