"""Cached index over a dataset.

A document becomes one chunk: its title is the prefix, words cover the whole text, and the embedder cuts at its own
limit. Such chunks have no file path, because document ids are not words. With `cut`, documents are added as
`Engine.add` adds them, and results are grouped by document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dowse.config import Config
from dowse.evaluate.datasets import CorpusDocument, Dataset, JudgedQuery
from dowse.identity import chunk_id, document_id, text_hash
from dowse.ingest.documents import NewDocument, add_documents
from dowse.ingest.embed import embed_backlog
from dowse.ports import Embedder, Progress, Reporter
from dowse.reports import Problem
from dowse.store.embedded import EmbeddedStore
from dowse.types import AnyChunk, Chunk, CorpusType, Document

WHOLE, CUT = "whole1", "cut1"  # raise the number when the chunks of a document change
_BATCH = 500  # documents a transaction
Label = Callable[[JudgedQuery, AnyChunk, Set[str]], str]  # id of a hit in the judgments, given the ids of better hits


class Collection(msgspec.Struct, frozen=True, eq=False):
    """Index with judged queries."""

    dataset: Dataset
    store: EmbeddedStore
    embedder: Embedder | None
    label: Label
    cut: bool = False  # documents have several chunks, and results are grouped by document


@contextmanager
def opened(
    dataset: Dataset, cache: Path, embedder: Embedder | None, *, cut: bool = False, report: Reporter | None = None
) -> Iterator[Collection]:
    """Open the index for this dataset and model; make or complete it first if needed."""
    with closing(EmbeddedStore(cache / folder_name(dataset, embedder, cut=cut))) as store:
        problems = _fill(store, dataset, embedder, cut=cut, report=report)
        if problems:
            first = f"{problems[0].path}: {problems[0].reason}"
            note = f"documents that Dowse cannot add, counted as not found ({first})"
            dataset = replace(dataset, notes=(*dataset.notes, f"{len(problems)} {note}"))
        names = {document_id(dataset.name, each.id): each.id for each in dataset.documents}
        yield Collection(dataset, store, embedder, lambda _question, chunk, _seen: names[chunk.document_id], cut)


def folder_name(dataset: Dataset, embedder: Embedder | None, *, cut: bool = False) -> str:
    model = embedder.model if embedder else "words"
    parts = (dataset.name, dataset.content_hash, model, CUT if cut else WHOLE)
    return "-".join(re.sub(r"[^\w.+@-]", "_", part) for part in parts)


def as_document(source: str, text: CorpusDocument) -> Document:
    """Make a document of one chunk."""
    uri, identity = f"{source}/{text.id}", document_id(source, text.id)
    prefixed = f"{text.title}\n{text.text}" if text.title else text.text
    chunk = Chunk(
        id=chunk_id(uri, "chunk", text.text, 0),
        document_id=identity,
        text=text.text,
        corpus_type=CorpusType.DOC_PAGE,
        source_uri=uri,
        document_title=text.title,
        document_source=source,
        context_prefix=text.title,
        content_hash=text_hash(prefixed),
    )
    content = text_hash(f"{text.title}\0{text.text}")
    return Document(identity, source, text.id, text.title, content, (chunk,), size_bytes=len(text.text))


def _fill(
    store: EmbeddedStore, dataset: Dataset, embedder: Embedder | None, *, cut: bool, report: Reporter | None
) -> Sequence[Problem]:
    """Add missing documents and vectors; return the documents that cannot be added."""
    there = {each.path for each in store.documents()}
    missing = [each for each in dataset.documents if each.id not in there]
    stats = store.reader().stats
    if not missing and (embedder is None or stats.vectors == stats.chunks):
        return ()  # without opening it for writing: two runs can share it
    problems: tuple[Problem, ...] = ()
    with closing(store.writer()) as writer:
        batches = _batches(missing, dataset, report)
        if cut:
            # The id of a document is a number or a name, so its extension means nothing: the text is plain.
            added = (
                NewDocument(
                    text.id,
                    text.text if text.text.strip() else text.title,
                    media_type="text/plain",
                    title=text.title,
                    source=dataset.name,
                )
                for batch in batches
                for text in batch
            )
            problems = add_documents(store, writer, added, Config()).problems
        else:
            for batch in batches:
                writer.put([as_document(dataset.name, each) for each in batch])
        writer.publish()
        if embedder is not None:
            writer.use_model(embedder.model, embedder.dimension)
            embed_backlog(writer, embedder, report)
    return problems


def _batches(
    missing: Sequence[CorpusDocument], dataset: Dataset, report: Reporter | None
) -> Iterator[Sequence[CorpusDocument]]:
    total = len(dataset.documents)
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        yield batch
        if report:
            report(Progress("read", total - len(missing) + start + len(batch), total, dataset.name))
