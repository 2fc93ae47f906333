"""Linker: makes edges from changed documents to the targets they mention in all other documents.

It reads nothing from disk, so that it can run at any time: the store knows the documents to link, and the next run
continues an interrupted one. Unchanged documents are linked again when the target of an edge is gone, or when a name
they mention appears or disappears; the word index finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from dowse.filters import Filter, by_corpus
from dowse.identity import number_id
from dowse.ingest.links.cards import Card, card_of, import_keys
from dowse.ingest.links.references import (
    SERVICE_WEIGHT,
    WEIGHTS,
    ReferenceExtractor,
    TargetReference,
    common,
    import_paths,
)
from dowse.ingest.links.resolve import MentionContext, TargetResolver
from dowse.link_names import MODULE, SEPARATORS, SYMBOL, THREAD
from dowse.ports import Progress, Reporter, Store, StoreReader, StoreWriter
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, Document, Edge

MAKER = "link"
BATCH = 256  # documents a transaction; chosen: each transaction writes most pages of the edge table
MOST_CACHED = 100_000  # chunks; chosen: some 80 MB
MOST_NAMES = 500  # new or removed; chosen: for more, linking all documents again costs no more
MOST_MENTIONS = 100  # chunks with a name; chosen: a name in more of them is a word
MOST_SERVICES = 8  # that one chunk is linked to by name; chosen: a longer list is an overview

# Reason for each relation. Of two relations between the same chunks the earlier one here is kept.
_BECAUSE = {
    "documents": "its heading names {}", "replies_to": "the thread {} began there", "calls": "as {}",
    "references": "it links to {}", "deploys": "the code of {} begins there", "imports": "as {}",
    "mentions": "it names {}",
}  # fmt: skip
_RANK = {relation: rank for rank, relation in enumerate(_BECAUSE)}


class LinkReport(msgspec.Struct, frozen=True):
    """Numbers of linked documents and of edges."""

    documents: int = 0
    edges: int = 0


class ChunkReferences(NamedTuple):
    """References of one chunk."""

    card: Card
    references: list[TargetReference]
    imports: tuple[str, ...]
    prose: str  # text that may name services; "" for code and for parents


class ExtractionCache:
    """References of documents written in this run: reading them from the store again takes 40 µs a chunk."""

    def __init__(self) -> None:
        self.documents: dict[str, list[ChunkReferences]] = {}
        self._extractor = ReferenceExtractor()
        self._left = MOST_CACHED

    def add(self, document: Document) -> None:
        """Extract the references of a written document."""
        self.documents.pop(document.id, None)
        if len(document.chunks) <= self._left:
            self._left -= len(document.chunks)
            self.documents[document.id] = self.extract(document.chunks)

    def extract(self, chunks: Iterable[Chunk]) -> list[ChunkReferences]:
        return [
            ChunkReferences(
                card_of(chunk),
                self._extractor.references_of(chunk),
                chunk.imports,
                "" if chunk.corpus_type.startswith("CODE") or chunk.level != "chunk" else chunk.text,
            )
            for chunk in chunks
        ]


def link(
    store: Store, writer: StoreWriter, report: Reporter | None = None, cache: ExtractionCache | None = None
) -> LinkReport:
    """Link the waiting documents, which must be published."""
    reader = store.reader()
    _relink_mentioning(store, reader, writer)
    waiting = writer.unlinked(MAKER)
    if not waiting:
        return LinkReport()
    services = {each.name: each for each in reader.services() if each.chunk_ids and not each.external}
    cache = cache or ExtractionCache()
    cards = {each.card.id: each.card for own in cache.documents.values() for each in own}
    names = sorted((re.escape(name) for name in services if not common(name)), key=lambda name: (-len(name), name))
    whole = rf"(?<![A-Za-z0-9_-])(?:{'|'.join(names)})(?![A-Za-z0-9_-])"  # `auth` is not part of `auth-service`
    named = re.compile(whole, re.IGNORECASE) if names else None
    linker = _Linker(reader, TargetResolver(reader, services, cards), named, cache)
    made = 0
    for start in range(0, len(waiting), BATCH):
        batch = waiting[start : start + BATCH]
        edges = linker.edges(batch)
        writer.put_edges(MAKER, edges)
        made += sum(map(len, edges.values()))
        if report:
            report(Progress("link", start + len(batch), len(waiting)))
    return LinkReport(len(waiting), made)


def _relink_mentioning(store: Store, reader: StoreReader, writer: StoreWriter) -> None:
    """Schedule documents that may mention a new or removed name."""
    waiting = len(writer.unlinked(MAKER))
    if waiting and waiting >= reader.stats.documents:  # all documents wait already, and the names may be very many
        writer.relink(MAKER, ())
        return
    renamed = writer.renamed()
    if not renamed:
        return
    if len(renamed) > MOST_NAMES:
        writer.relink(MAKER, {info.id for info in store.documents()})
    else:
        writer.relink(MAKER, set(_mentioning(renamed, reader, Tokenizer())))


def _mentioning(renamed: Iterable[tuple[str, str]], reader: StoreReader, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield documents with a chunk that contains one of the names."""
    searched: set[tuple[str, Filter]] = set()
    for kind, name in renamed:
        if kind == THREAD:
            yield from (each.document_id for each in reader.named(THREAD, [name]))
            continue
        last = SEPARATORS.split(name)[-1] if kind == SYMBOL else name
        where = (by_corpus("CODE_LOGIC"),) if kind == MODULE else ()
        if common(last) or (last, where) in searched:
            continue
        searched.add((last, where))
        terms = tokenizer.code(last)
        whole = terms[-1:] if terms and terms[-1] == last.lower() else terms
        found = reader.search_words("bm25_code", whole, MOST_MENTIONS, where).ids.tolist()
        chunks = reader.get([number_id(each) for each in found]).values()
        yield from (chunk.document_id for chunk in chunks if last in chunk.text or last in " ".join(chunk.imports))


@dataclass
class _Linker:
    """Maker of edges for batches of documents."""

    reader: StoreReader
    targets: TargetResolver
    named: re.Pattern[str] | None  # name of any service
    cache: ExtractionCache

    def edges(self, batch: Sequence[str]) -> dict[str, list[Edge]]:
        cached = self.cache.documents
        chunks = {
            each: self.cache.extract(self.reader.document_chunks(each)) if each not in cached else cached[each]
            for each in batch
        }
        # Each reference once: in a batch, most of them repeat.
        self.targets.load({reference for own in chunks.values() for each in own for reference in each.references})
        return {each: list(self._of_document(own)) for each, own in chunks.items()}

    def _of_document(self, chunks: Sequence[ChunkReferences]) -> Iterator[Edge]:
        spelled = dict.fromkeys(each for chunk in chunks for each in chunk.imports)
        imports = import_keys(path for each in spelled for path in import_paths(each))
        imported: set[str] = set()
        known: dict[tuple[str, frozenset[str]], dict[TargetReference, Card | None]] = {}
        for card, references, _, prose in chunks:
            found = self.named.findall(prose) if self.named and prose else ()
            named = {each.lower() for each in found} & self.targets.services.keys()
            if not named and not references:
                continue
            services = frozenset((*named, card.service_name) if card.service_name else named)
            # In one file, the target of a reference depends only on these, and many references repeat.
            meant = known.setdefault((card.family, services), {})
            context = MentionContext(card, imports, services)
            for reference in references:
                if reference not in meant:
                    meant[reference] = self.targets.of(reference, context)
            targets = [(each, target) for each in references if (target := meant[each]) and target.id != card.id]
            for edge in self._of_chunk(card.id, targets, named):
                if edge.relation != "imports" or edge.target_id not in imported:  # chunks repeat those of their file
                    yield edge
                if edge.relation == "imports":
                    imported.add(edge.target_id)

    def _of_chunk(
        self, own: ChunkId, targets: Iterable[tuple[TargetReference, Card]], services: set[str]
    ) -> Iterator[Edge]:
        found: dict[ChunkId, Edge] = {}  # by target: one edge, of the first relation in _BECAUSE
        for (relation, _, _, spelled, *_), target in targets:
            earlier = found.get(target.id)
            if earlier is None or _RANK[relation] < _RANK[earlier.relation]:
                because = _BECAUSE[relation].format(spelled)
                found[target.id] = Edge(own, target.id, relation, WEIGHTS[relation], because)
        yield from found.values()
        for name in sorted(services)[:MOST_SERVICES]:
            home = self.targets.declared(name)
            if home and own not in self.targets.services[name].chunk_ids and home.id not in found:
                yield Edge(own, home.id, "mentions", SERVICE_WEIGHT, f"it names the service {name}")
