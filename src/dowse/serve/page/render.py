"""Views enter; pages leave as HTML in which nothing that was indexed is markup, with the headers that see to it.

Two walls: templates escape whatever they are given, without exception, and the policy forbids every script and style
but our own two files, so that a mistake in the first would still run nothing.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import dowse
from dowse.serve.plain_text import human_bytes, plural

FOLDER = Path(__file__).with_name("assets")
STATIC = ("page.css", "page.js", "theme.js", "icon.svg")
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A form that is sent without a referrer has no origin either, and our own guard would refuse it.
HEADERS: Mapping[str, str] = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}

_HEADINGS: Mapping[int, str] = {
    400: "This cannot be asked so",
    403: "This is not allowed here",
    404: "Not found",
    429: "Too many questions at once",
    504: "It took too long",
}


@dataclass(frozen=True)
class Asset:
    """A file of ours; the version in its address changes with its bytes."""

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


@dataclass(frozen=True)
class Templates:
    """The page's templates, read when they are first needed. Safe to use from several threads."""

    assets: Mapping[str, Asset] = field(default_factory=assets)
    _environment: Environment = field(init=False, repr=False)

    def __post_init__(self) -> None:
        made = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.globals |= {"version": dowse.__version__, "asset": self.address, "heading": heading}
        made.filters |= {"plural": plural, "human_bytes": human_bytes, "breakable": breakable}
        object.__setattr__(self, "_environment", made)

    def address(self, name: str) -> str:
        return f"/static/{name}?v={self.assets[name].version}"

    def text(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(**values)

    def page(self, template: str, **values: Any) -> bytes:
        """Names of files need not be text; what cannot be said in UTF-8 is shown as a question mark."""
        return self.text(template, **values).encode("utf-8", "replace")


def breakable(path: str) -> Markup:
    """A path that may go on in the next line after each slash."""
    return Markup("/<wbr>").join(escape(part) for part in path.split("/"))


def heading(status: int) -> str:
    """What a problem is called to people; its detail says what to do."""
    return _HEADINGS.get(status, "This does not work now" if status >= 500 else "This cannot be done")


def html(data: bytes, status: int = 200) -> Response:
    return Response(data, status_code=status, media_type=HTML, headers=dict(HEADERS))


def static(asset: Asset) -> Response:
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(asset.data, media_type=asset.media_type, headers=kept)
