"""Documents of another framework in an index: one source, in which the framework chooses the ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from dowse.adapters.metadata import restored, stored
from dowse.engine import Engine
from dowse.errors import BadRequestError
from dowse.filters import META, Filter, by_source, check, fulfils
from dowse.identity import document_id
from dowse.ingest.documents import NewDocument
from dowse.lookup.lines import text_of
from dowse.types import DocumentInfo

MOST_NAMED = 5  # problems in a message; chosen


class StoredDocument(msgspec.Struct, frozen=True):
    """Document or passage of it, as the framework gave it."""

    id: str
    text: str
    metadata: dict[str, Any]
    score: float | None = None


class DocumentCollection(msgspec.Struct, frozen=True):
    """Documents of one source of an open engine."""

    engine: Engine
    source: str

    def put(self, documents: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Add or replace documents of id, text and metadata. BadRequestError names those that could not be added."""
        plain = "text/plain"  # frameworks give text without a format
        rows = (
            NewDocument(id, text, media_type=plain, source=self.source, metadata=dict(stored(meta)))
            for id, text, meta in documents
        )
        problems = self.engine.add(rows).problems
        if problems:
            named = "; ".join(f"{each.path}: {each.reason}" for each in problems[:MOST_NAMED])
            raise BadRequestError(f"{len(problems)} of the documents could not be added: {named}")

    def infos(self, ids: Collection[str] | None = None, where: Filter = ()) -> list[DocumentInfo]:
        """Return the documents that pass a filter over metadata, in the order of `ids` if given."""
        if ids is None:
            found = self.engine.documents(source=self.source)
        else:
            known = {info.path: info for info in self.engine.reader().documents_of(self._keys(ids))}
            found = [known[each] for each in ids if each in known]
        where = check(where)
        return [info for info in found if fulfils(_values(info), where)]

    def get(self, infos: Iterable[DocumentInfo]) -> list[StoredDocument]:
        reader = self.engine.reader()
        chunks = ((info, reader.document_chunks(info.id)) for info in infos)
        return [
            StoredDocument(info.path, text_of([each for each in own if each.level == "chunk"]), restored(info.meta))
            for info, own in chunks
        ]

    def remove(self, ids: Collection[str]) -> int:
        return self.engine.remove(self._keys(ids), missing_ok=True) if ids else 0

    def search(self, query: str, k: int, where: Filter = (), **fields: object) -> list[StoredDocument]:
        """Return passages of this source, best first."""
        if not query.strip():
            return []
        hits = self.engine.query(query, top_k=k, where=(by_source(self.source), *where), **fields).chunks
        return [StoredDocument(hit.file_path or "", hit.text, restored(hit.meta), hit.final_score) for hit in hits]

    def _keys(self, ids: Iterable[str]) -> list[str]:
        return [document_id(self.source, each) for each in ids]


def _values(info: DocumentInfo) -> Callable[[str], str | None]:
    known = {META + key: value for key, value in info.meta}
    return (known | {"file_path": info.path, "document_id": info.id, "document_source": info.source}).get
