"""Cached index over a dataset, filled as the product fills one.

A document becomes one chunk: its title is the prefix, words cover the whole text, and the embedder cuts at its own
limit. With `chunked` a long document also gets the chunks that `dowse index` would make, and ranks by its whole and its
best chunk together. Chunks have no file path, because document ids are not words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from dowse.evaluate.datasets import CorpusDocument, Dataset, JudgedQuery
from dowse.evaluate.long_documents import ChunkGroups
from dowse.identity import chunk_id, document_id, text_hash
from dowse.ingest.chunking.pack import PROSE, windows
from dowse.ingest.embed import embed_backlog
from dowse.ports import Embedder, Progress, Reporter
from dowse.store.embedded import EmbeddedStore
from dowse.types import AnyChunk, Chunk, CorpusType, Document

WHOLE, PIECES = "whole1", "chunks2"  # raise the number when the chunks of a document change
_BATCH = 500  # documents a transaction


Label = Callable[[JudgedQuery, AnyChunk, Set[str]], str]
"""Function from a hit to its id in the judgments, given the ids of better hits of the query."""


class Collection(msgspec.Struct, frozen=True, eq=False):
    """Index with judged queries."""

    dataset: Dataset
    store: EmbeddedStore
    embedder: Embedder | None
    label: Label
    groups: ChunkGroups | None = None  # if documents are cut into chunks and ranked as documents


@contextmanager
def opened(
    dataset: Dataset, cache: Path, embedder: Embedder | None, *, chunked: bool = False, report: Reporter | None = None
) -> Iterator[Collection]:
    """Open the index for this dataset and model; make or complete it first if needed."""
    with closing(EmbeddedStore(cache / folder_name(dataset, embedder, chunked=chunked))) as store:
        _fill(store, dataset, embedder, chunked=chunked, report=report)
        names = {document_id(dataset.name, each.id): each.id for each in dataset.documents}
        cut = (as_document(dataset.name, each, chunked=True) for each in dataset.documents)
        groups = ChunkGroups.of(cut) if chunked else None
        yield Collection(dataset, store, embedder, lambda _question, chunk, _seen: names[chunk.document_id], groups)


def folder_name(dataset: Dataset, embedder: Embedder | None, *, chunked: bool) -> str:
    model = embedder.model if embedder else "words"
    parts = (dataset.name, dataset.content_hash, model, PIECES if chunked else WHOLE)
    return "-".join(re.sub(r"[^\w.+@-]", "_", part) for part in parts)


def as_document(source: str, text: CorpusDocument, *, chunked: bool) -> Document:
    identity = document_id(source, text.id)
    chunks = tuple(_chunks(source, text, identity, chunked=chunked))
    content = text_hash(f"{text.title}\0{text.text}")
    return Document(identity, source, text.id, text.title, content, chunks, size_bytes=len(text.text))


def _chunks(source: str, text: CorpusDocument, identity: str, *, chunked: bool) -> Iterator[Chunk]:
    """Yield the whole, then the chunks if there are several."""
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
    """Add missing documents and vectors.

    A complete index is not opened for writing: two runs can share it.
    """
    there = {each.path for each in store.documents()}
    missing = [each for each in dataset.documents if each.id not in there]
    stats = store.reader().stats
    if not missing and (embedder is None or stats.vectors == stats.chunks):
        return
    with closing(store.writer()) as writer:
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            writer.put([as_document(dataset.name, each, chunked=chunked) for each in batch])
            if report:
                report(Progress("read", len(there) + start + len(batch), len(dataset.documents), dataset.name))
        writer.publish()
        if embedder is not None:
            writer.use_model(embedder.model, embedder.dimension)
            embed_backlog(writer, embedder, report)
