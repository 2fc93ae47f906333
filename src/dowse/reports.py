"""What is said about an index and a query: how a run went, what it holds, what a check found, what was skipped."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """A file that could not be indexed, and why."""

    path: str
    reason: str


class IndexReport(msgspec.Struct, frozen=True):
    """What an index run did. Files that could not be read are problems; files left out by a rule are skipped."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: tuple[tuple[str, int], ...] = ()  # by reason, most frequent first
    problems: tuple[Problem, ...] = ()
    chunks: int = 0  # written by this run
    embedded: int = 0  # vectors made by this run
    pending: int = 0  # chunks that still wait for a vector
    embedding_note: str = ""  # why vectors were not made, if they were not
    seconds: float = 0.0
    interrupted: bool = False
    masked: int = 0  # secrets that were taken out before anything was stored
    scrubbed: tuple[tuple[str, int], ...] = ()  # e-mail, phone, name: how often, where a source is scrubbed
    left_out: tuple[Problem, ...] = ()  # every skipped file with its reason, if they were asked for
    notes: tuple[str, ...] = ()  # what was done in part, in words


class SourceStatus(msgspec.Struct, frozen=True):
    """How a source stands against its files."""

    name: str
    root: str
    documents: int
    chunks: int
    stale: int  # files that changed since they were indexed
    missing: int  # files that are gone
    last_indexed: datetime | None
    embedded: int = 0  # chunks that have a vector


class Status(msgspec.Struct, frozen=True):
    """How an index stands."""

    path: str
    schema_version: int
    model: str | None
    dimension: int | None
    documents: int
    chunks: int
    vectors: int
    pending: int  # chunks that wait for a vector
    dead_chunks: int  # replaced or removed, until the next compaction
    size_bytes: int
    sources: tuple[SourceStatus, ...]


class Check(msgspec.Struct, frozen=True):
    """What a doctor looked at and found."""

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Degradation:
    """A stage that was skipped or answered in part, and the reason."""

    stage: str
    reason: str


@dataclass(frozen=True)
class QueryMetadata:
    """Timings and counts of one query; its fields are also keys, as in `query_metadata["total_ms"]`."""

    total_ms: float = 0.0
    stages: tuple[tuple[str, float], ...] = ()  # milliseconds by stage
    counts: tuple[tuple[str, int], ...] = ()  # chunks by stage
    embedding_coverage: float = 0.0  # share of the chunks that have a vector
    model: str | None = None
    fusion: str | None = None
    chunks: int = 0  # in the index

    def keys(self) -> list[str]:
        return [each.name for each in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field; stages and counts as dicts."""
        value = vars(self)[name]
        return dict(value) if name in ("stages", "counts") else value
