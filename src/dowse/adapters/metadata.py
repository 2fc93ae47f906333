"""Metadata of a hit for other frameworks; their metadata and loaded documents for an index."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dowse.ingest.documents import NewDocument
from dowse.query.context import cited, titled
from dowse.types import ScoredChunk

Plain = str | int | float | bool

_FIELDS = (
    "source_uri", "document_source", "document_id", "file_path", "start_line", "end_line", "page", "corpus_type",
    "language", "repo_name", "service_name", "symbol_name", "symbol_kind", "section_path", "channel", "author",
    "confidence", "stale",
)  # fmt: skip
META = "meta."  # prefix of the user's keys, as in filters, so that they never hide a field
_PLACES = ("source", "file_path", "path", "url", "URL")  # keys that loaders use for the origin of a document
_JSON_KEYS = "_json_keys"  # names the keys whose values are no text; an index stores text only


def metadata(hit: ScoredChunk) -> dict[str, Plain]:
    """Return `citation`, `score` (`final_score`) and other fields by the names of the JSON results."""
    found: dict[str, Plain | None] = {name: getattr(hit, name) for name in _FIELDS}
    found |= {"chunk_id": hit.id, "citation": cited(hit), "title": titled(hit), "score": hit.final_score}
    found["timestamp"] = hit.timestamp
    found |= {META + key: value for key, value in hit.meta}
    return {name: value for name, value in found.items() if value not in (None, "")}


def stored(given: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as text: all but text as JSON, None left out."""
    known = {str(key): value for key, value in given.items() if value is not None}
    others = sorted(key for key, value in known.items() if not isinstance(value, str))
    found = {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in known.items()}
    return found | ({_JSON_KEYS: json.dumps(others)} if others else {})


def restored(meta: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return metadata with the types that it had."""
    found: dict[str, Any] = dict(meta)
    for key in json.loads(found.pop(_JSON_KEYS, "[]")):
        found[key] = json.loads(found[key])
    return found


def loaded(rows: Iterable[tuple[str | None, str, Mapping[str, Any]]], source: str) -> Iterator[NewDocument]:
    """Yield documents of id, text and metadata; those without text are left out.

    A document without an id gets its origin as id, and the later parts of one origin a number. So loading again
    replaces the same documents.
    """
    parts: Counter[str] = Counter()
    for given, text, meta in rows:
        if not text.strip():
            continue
        place = next((str(meta[key]) for key in _PLACES if meta.get(key)), "")
        name = given or place or "document"
        parts[name] += 1
        number = f"#{parts[name]}" if parts[name] > 1 or not (given or place) else ""
        fields = {key: meta[key] for key in ("title", "author") if isinstance(meta.get(key), str)}
        rest = stored({key: value for key, value in meta.items() if key not in fields})
        url = place if "://" in place else ""
        # Text from a loader is plain, whatever the name of its file.
        yield NewDocument(
            name + number, text, media_type="text/plain", source=source, url=url, metadata=dict(rest), **fields
        )
