"""A hit goes in; what other frameworks keep beside its text comes out: flat, by name, plain values, nothing empty."""

from __future__ import annotations

from dowse.query.context import cited, titled
from dowse.types import ScoredChunk

Plain = str | int | float | bool

_FIELDS = (
    "source_uri", "document_source", "document_id", "file_path", "start_line", "end_line", "page", "corpus_type",
    "language", "repo_name", "service_name", "symbol_name", "symbol_kind", "section_path", "channel", "author",
    "confidence", "stale",
)  # fmt: skip
META = "meta."  # before the user's own keys, as in filters: a key of theirs never hides one of ours


def metadata(hit: ScoredChunk) -> dict[str, Plain]:
    """`citation` is where it is, `score` is `final_score` in [0,1]; other names are those of the JSON results."""
    found: dict[str, Plain | None] = {name: getattr(hit, name) for name in _FIELDS}
    found |= {"chunk_id": hit.id, "citation": cited(hit), "title": titled(hit), "score": hit.final_score}
    found["timestamp"] = None if hit.timestamp is None else hit.timestamp.isoformat()
    found |= {META + key: value for key, value in hit.meta}
    return {name: value for name, value in found.items() if value not in (None, "")}
