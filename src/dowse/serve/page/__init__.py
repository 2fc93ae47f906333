"""Web page: HTML for each URL; it works without JavaScript.

Templates, styles and scripts are in `assets/`. Imports `serve.wire`, `serve.backend` and Jinja.
"""
