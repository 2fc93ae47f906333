"""Registry of readers by name: those of Dowse and those of installed packages.

A package offers a reader by an entry point of the group `dowse.readers`. Its name is the name of a reader or, simpler,
the extension of the files it reads (`log` reads `*.log`). Its value is a function from text to pieces, or a class with
`name` and `read` (`dowse.ports.Reader`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature

from dowse.errors import MissingExtraError
from dowse.ingest.readers.plugin import FunctionReader, text_reader
from dowse.ports import Reader

GROUP = "dowse.readers"
# Loaded on first use: a run over one folder needs few of the parsers.
_OWN = {
    "code": "code.reader:read_code",
    "markdown": "readers.markdown:read_markdown",
    "text": "readers.text:read_text",
    "slack": "readers.slack:SlackReader",
    "transcript": "readers.transcript:read_transcript",
    "mail": "readers.mail:read_mail",
    "rst": "readers.rst:read_rst",
    "html": "readers.html:read_html",
    "docx": "readers.docx:read_docx",
    "pdf": "pdf.reader:read_pdf",
    "csv": "readers.csv:read_csv",
    "json": "readers.json:read_json",
    "notebook": "readers.notebook:read_notebook",
    "yaml": "manifests.yaml:read_yaml",
    "dockerfile": "manifests.dockerfile:read_dockerfile",
    "hcl": "manifests.terraform:read_hcl",
    "proto": "manifests.proto:read_proto",
    "env": "manifests.env:read_env",
}

ReaderFactory = Callable[[], Reader]


def find_readers() -> dict[str, ReaderFactory]:
    """Return all readers by name. An installed reader replaces Dowse's own of the same name."""
    own: dict[str, ReaderFactory] = {name: partial(_own, name, target) for name, target in _OWN.items()}
    return own | {point.name: partial(_installed, point) for point in entry_points(group=GROUP)}


def _own(name: str, target: str) -> Reader:
    module, _, attribute = target.partition(":")
    found = getattr(import_module(f"dowse.ingest.{module}"), attribute)
    return found() if isinstance(found, type) else FunctionReader(name, found)


def _installed(point: EntryPoint) -> Reader:
    try:
        found = point.load()
    except (ImportError, AttributeError) as err:
        raise MissingExtraError(
            f"cannot load the reader {point.name!r} ({point.value}): {err}; install the missing package or uninstall "
            "the one that offers this reader"
        ) from err
    # A function from text to pieces; one without arguments makes a reader.
    takes_text = not isinstance(found, type) and any(
        each.default is Parameter.empty for each in signature(found).parameters.values()
    )
    return text_reader(point.name, found) if takes_text else found()
