"""Metadata of a hit for other frameworks: flat, plain values, nothing empty."""

from __future__ import annotations

from dowse.query.context import cited, titled
from dowse.types import ScoredChunk

Plain = str | int | float | bool

_FIELDS = (
    "source_uri", "document_source", "document_id", "file_path", "start_line", "end_line", "page", "corpus_type",
    "language", "repo_name", "service_name", "symbol_name", "symbol_kind", "section_path", "channel", "author",
    "confidence", "stale",
)  # fmt: skip
META = "meta."  # prefix of the user's keys, as in filters, so that they never hide a field


def metadata(hit: ScoredChunk) -> dict[str, Plain]:
    """Return `citation`, `score` (`final_score`) and other fields by the names of the JSON results."""
    found: dict[str, Plain | None] = {name: getattr(hit, name) for name in _FIELDS}
    found |= {"chunk_id": hit.id, "citation": cited(hit), "title": titled(hit), "score": hit.final_score}
    found["timestamp"] = hit.timestamp
    found |= {META + key: value for key, value in hit.meta}
    return {name: value for name, value in found.items() if value not in (None, "")}
