"""Sample project for the demo and the tests: its folder, and queries with known results."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["SampleQuery", "queries", "root"]

Kind = Literal["identifier", "paraphrase", "error", "config", "filtered", "slack", "paper", "question"]


class SampleQuery(msgspec.Struct, frozen=True):
    """Query and a file that must be among its results; other files may be good results too.

    A paraphrase has no term in common with its file and its path, so that only meaning can find it.
    """

    text: str
    expect: str  # path of the file below root(), with forward slashes
    line: str  # part of a line of that file, which occurs there once
    why: str
    kind: Kind
    filters: tuple[tuple[str, str], ...] = ()  # fields of QueryRequest: engine.query(text, **dict(filters))


def root() -> Path:
    """Return the folder to index: a real path, because the package is installed as plain files."""
    return Path(str(files(__name__))) / "acme"


def queries() -> tuple[SampleQuery, ...]:
    """Read the queries of queries.json.

    A regression check, not a measure of quality: of several paraphrases for each target, those were chosen that the
    default model finds. `evaluate` measures quality on independent collections.
    """
    return msgspec.json.decode((root().parent / "queries.json").read_bytes(), type=tuple[SampleQuery, ...])
