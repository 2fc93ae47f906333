"""Documents of the loaders and readers of other frameworks as documents to add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dowse.adapters.metadata import stored
from dowse.ingest.documents import NewDocument

_PLACES = ("source", "file_path", "path", "url", "URL")  # keys that loaders use for the origin of a document
_FIELDS = ("title", "author")


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
        fields = {key: meta[key] for key in _FIELDS if isinstance(meta.get(key), str)}
        rest = stored({key: value for key, value in meta.items() if key not in fields})
        url = place if "://" in place else ""
        # Text from a loader is plain, whatever the name of its file.
        yield NewDocument(
            name + number, text, media_type="text/plain", source=source, url=url, metadata=dict(rest), **fields
        )
