"""HTTP server: JSON, server-sent events and problem documents over Starlette routes.

Admission control, guards and metrics surround the routes. Imports `serve.wire`, `serve.backend` and Starlette.
"""
