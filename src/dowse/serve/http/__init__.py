"""HTTP server: JSON, server-sent events and problem documents over Starlette routes."""
