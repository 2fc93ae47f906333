"""Rendering of templates to HTML responses with a strict content security policy.

Two defences against markup in indexed text: templates escape every value, and the policy allows only our own scripts
and styles, so that a missed escape still runs nothing.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.responses import Response

import dowse
from dowse.serve.jobs import OVER
from dowse.serve.plain_text import clean_line, human_bytes, plural

FOLDER = Path(__file__).with_name("assets")
STATIC = ("page.css", "page.js", "theme.js", "icon.svg")
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Without a referrer a form sends no origin either, and our own guard would refuse it.
HEADERS: Mapping[str, str] = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}

_HEADINGS: Mapping[int, str] = {
    400: "Invalid query",
    403: "Not allowed",
    404: "Not found",
    429: "Too many requests",
    504: "Timeout",
}


class Asset(Struct, frozen=True):
    """Static file; the version in its URL changes with its content."""

    data: bytes
    media_type: str
    version: str


def assets() -> dict[str, Asset]:
    found = {}
    for name in STATIC:
        data = (FOLDER / name).read_bytes()
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
        found[name] = Asset(data, kind, hashlib.sha256(data).hexdigest()[:12])
    return found


class Templates:
    """Templates of the page, loaded on first use. Safe to use from several threads."""

    def __init__(self) -> None:
        self.assets = assets()
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals |= {"version": dowse.__version__, "asset": self.address, "heading": heading}
        self._environment.globals["over"] = OVER
        self._environment.filters |= {
            "plural": plural,
            "human_bytes": human_bytes,
            "breakable": breakable,
            "line": clean_line,
        }

    def address(self, name: str) -> str:
        return f"/static/{name}?v={self.assets[name].version}"

    def text(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(**values)

    def page(self, template: str, **values: Any) -> bytes:
        """Render a page; bytes of file names that are not UTF-8 become question marks."""
        return self.text(template, **values).encode("utf-8", "replace")


def breakable(path: str) -> Markup:
    """Allow line breaks after the slashes of a path."""
    return Markup("/<wbr>").join(escape(part) for part in path.split("/"))


def heading(status: int) -> str:
    """Return the heading of an error page."""
    return _HEADINGS.get(status, "Server error" if status >= 500 else "Invalid request")


def html(data: bytes, status: int = 200) -> Response:
    return Response(data, status_code=status, media_type=HTML, headers=dict(HEADERS))


def static(asset: Asset) -> Response:
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(asset.data, media_type=asset.media_type, headers=headers)
