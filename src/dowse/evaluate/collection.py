"""A dataset goes in; an index over it comes out of a cache folder, filled as the product fills one.

A document becomes one chunk: its title is the prefix, words cover the whole text, and the embedder cuts at its own
limit. With `chunked` the product's own cutting adds the pieces of a long one, and a document ranks by its whole and its
best piece together. Ids are no words, so no chunk has a file path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dowse.evaluate.datasets import Dataset, Question, Text
from dowse.evaluate.long_documents import Families
from dowse.identity import chunk_id, document_id, text_hash
from dowse.ingest.chunking.pack import PROSE, windows
from dowse.ingest.embed import embed_backlog
from dowse.ports import Embedder, Progress, Reporter
from dowse.store.embedded import EmbeddedStore
from dowse.types import Chunk, CorpusType, Document

WHOLE, PIECES = "whole1", "chunks2"  # the number goes up when a document becomes other chunks than before
_BATCH = 500  # documents a transaction


Label = Callable[[Question, Chunk, Set[str]], str]
"""A hit becomes the id by which the judgments know it, given the ids that better hits of its question have."""


@dataclass(frozen=True, eq=False)
class Collection:
    """An index, questions to it, and how its hits are judged."""

    dataset: Dataset
    store: EmbeddedStore
    embedder: Embedder | None
    label: Label
    families: Families | None = None  # where documents are in pieces and are ranked as documents


@contextmanager
def opened(
    dataset: Dataset, cache: Path, embedder: Embedder | None, *, chunked: bool = False, report: Reporter | None = None
) -> Iterator[Collection]:
    """The index for this dataset and model: reused, or gone on with, or made."""
    folder = cache / folder_name(dataset, embedder, chunked=chunked)
    store = EmbeddedStore(folder)
    try:
        _fill(store, dataset, embedder, chunked=chunked, report=report)
        names = {document_id(dataset.name, each.id): each.id for each in dataset.documents}
        families = _families(dataset) if chunked else None
        yield Collection(dataset, store, embedder, lambda _question, chunk, _seen: names[chunk.document_id], families)
    finally:
        store.close()


def folder_name(dataset: Dataset, embedder: Embedder | None, *, chunked: bool) -> str:
    model = embedder.model if embedder else "words"
    parts = (dataset.name, dataset.content_hash, model, PIECES if chunked else WHOLE)
    return "-".join(re.sub(r"[^\w.+@-]", "_", part) for part in parts)


def as_document(source: str, text: Text, *, chunked: bool) -> Document:
    identity = document_id(source, text.id)
    chunks = tuple(_chunks(source, text, identity, chunked=chunked))
    content = text_hash(f"{text.title}\0{text.text}")
    return Document(identity, source, text.id, text.title, content, chunks, size_bytes=len(text.text))


def _families(dataset: Dataset) -> Families:
    return Families.of(as_document(dataset.name, each, chunked=True) for each in dataset.documents)


def _chunks(source: str, text: Text, identity: str, *, chunked: bool) -> Iterator[Chunk]:
    """The whole, then the pieces if there are several."""
    uri = f"{source}/{text.id}"
    whole = (0, len(text.text))
    pieces = windows(text.text, whole, PROSE.fitted(text.text)) if chunked else []
    spans = [whole, *pieces] if len(pieces) > 1 else [whole]
    for number, (start, stop) in enumerate(spans):
        body = text.text[start:stop]
        prefixed = f"{text.title}\n{body}" if text.title else body
        yield Chunk(
            id=chunk_id(uri, "chunk", body, number),
            document_id=identity,
            text=body,
            corpus_type=CorpusType.DOC_PAGE,
            source_uri=uri,
            document_title=text.title,
            document_source=source,
            context_prefix=text.title,
            content_hash=text_hash(prefixed),
        )


def _fill(
    store: EmbeddedStore, dataset: Dataset, embedder: Embedder | None, *, chunked: bool, report: Reporter | None
) -> None:
    """Bring in what is missing. A complete index is not opened for writing, so that two runs can share it."""
    there = {each.path for each in store.documents()}
    missing = [each for each in dataset.documents if each.id not in there]
    stats = store.reader().stats
    if not missing and (embedder is None or stats.vectors == stats.chunks):
        return
    writer = store.writer()
    try:
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            writer.put([as_document(dataset.name, each, chunked=chunked) for each in batch])
            if report:
                report(Progress("read", len(there) + start + len(batch), len(dataset.documents), dataset.name))
        writer.publish()
        if embedder is not None:
            writer.use_model(embedder.model, embedder.dimension)
            embed_backlog(writer, embedder, report)
    finally:
        writer.close()
