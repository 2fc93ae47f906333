"""Stored documents that changed go in; edges to what they speak of, in all other documents, go into the store.

Nothing here is read from disk, so it can be done again at any time: what waits to be linked is in the store, and an
interrupted run is taken up by the next. Documents that did not change are linked again when a chunk they were tied to
is gone, or when a name came or went that they speak of; the words index tells who does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dowse.filters import Filter, by_corpus
from dowse.identity import number_id
from dowse.ingest.links.cards import Card, card_of, import_keys
from dowse.ingest.links.references import SERVICE_WEIGHT, WEIGHTS, Reference, Speech, common, import_paths
from dowse.ingest.links.resolve import Around, Targets
from dowse.link_names import MODULE, SEPARATORS, SYMBOL, THREAD
from dowse.ports import Progress, Reporter, Store, StoreReader, StoreWriter
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, Document, Edge

MAKER = "link"
BATCH = 256  # documents a transaction; chosen: each writes most pages of the table of edges
MOST_HEARD = 100_000  # chunks; chosen: some 80 MB
MOST_NAMES = 500  # that came or went; chosen: beyond it all documents are linked anew, which costs no more
MOST_SPEAKERS = 100  # chunks that hold a name; chosen: what more of them say is a word
MOST_SERVICES = 8  # that one chunk is tied to by naming them; chosen: a list of all says nothing of any

# What each relation says about why we think so. Of two between the same chunks, the earlier here explains more.
_BECAUSE = {
    "documents": "its heading names {}", "replies_to": "the thread {} began there", "calls": "as {}",
    "references": "it links to {}", "deploys": "the code of {} begins there", "imports": "as {}",
    "mentions": "it names {}",
}  # fmt: skip
_RANK = {relation: rank for rank, relation in enumerate(_BECAUSE)}


@dataclass(frozen=True)
class LinkReport:
    """What a run of the linker did."""

    documents: int = 0
    edges: int = 0


class Spoken(NamedTuple):
    """A chunk as the linker needs it."""

    card: Card
    references: list[Reference]
    imports: tuple[str, ...]
    prose: str  # where services may be named; "" for code and for parents


class Hearing:
    """What was read in this run, and need not be read again to be linked: that would take 40 µs a chunk."""

    def __init__(self) -> None:
        self.documents: dict[str, list[Spoken]] = {}
        self._speech = Speech()
        self._left = MOST_HEARD

    def hear(self, document: Document) -> None:
        """A document that was written."""
        self.documents.pop(document.id, None)
        if len(document.chunks) <= self._left:
            self._left -= len(document.chunks)
            self.documents[document.id] = self.spoken(document.chunks)

    def spoken(self, chunks: Iterable[Chunk]) -> list[Spoken]:
        return [
            Spoken(
                card_of(chunk),
                self._speech.references_of(chunk),
                chunk.imports,
                "" if chunk.corpus_type.startswith("CODE") or chunk.level != "chunk" else chunk.text,
            )
            for chunk in chunks
        ]


def link(store: Store, writer: StoreWriter, report: Reporter | None = None, heard: Hearing | None = None) -> LinkReport:
    """Link what waits for it. The documents must be published."""
    reader = store.reader()
    _wake(store, reader, writer)
    waiting = writer.unlinked(MAKER)
    if not waiting:
        return LinkReport()
    services = {each.name: each for each in reader.services() if each.chunk_ids and not each.external}
    linker = _Linker(reader, Targets(reader, services), _any_of(services), heard or Hearing())
    made = 0
    for start in range(0, len(waiting), BATCH):
        batch = waiting[start : start + BATCH]
        edges = linker.edges(batch)
        writer.put_edges(MAKER, edges)
        made += sum(map(len, edges.values()))
        if report:
            report(Progress("link", start + len(batch), len(waiting)))
    return LinkReport(len(waiting), made)


# --- who is to be linked again ------------------------------------------------------------------------


def _wake(store: Store, reader: StoreReader, writer: StoreWriter) -> None:
    """Let those be linked again who may speak of a name that came or went."""
    waiting = len(writer.unlinked(MAKER))
    if waiting and waiting >= reader.stats.documents:  # all of them do already, and the names may be very many
        writer.relink(MAKER, ())
        return
    renamed = writer.renamed()
    if not renamed:
        return
    if len(renamed) > MOST_NAMES:
        speakers = {info.id for info in store.documents()}
    else:
        speakers = set(_speakers(renamed, reader, Tokenizer()))
    writer.relink(MAKER, speakers)


def _speakers(renamed: Iterable[tuple[str, str]], reader: StoreReader, tokenizer: Tokenizer) -> Iterator[str]:
    """Documents with a chunk that holds one of the names."""
    asked: set[tuple[str, Filter]] = set()
    for kind, name in renamed:
        if kind == THREAD:
            yield from (each.document_id for each in reader.named(THREAD, [name]))
            continue
        last = SEPARATORS.split(name)[-1] if kind == SYMBOL else name
        where = (by_corpus("CODE_LOGIC"),) if kind == MODULE else ()
        if common(last) or (last, where) in asked:
            continue
        asked.add((last, where))
        terms = tokenizer.code(last)
        whole = terms[-1:] if terms and terms[-1] == last.lower() else terms
        found = reader.search_words("bm25_code", whole, MOST_SPEAKERS, where).ids.tolist()
        chunks = reader.get([number_id(each) for each in found]).values()
        yield from (chunk.document_id for chunk in chunks if last in chunk.text or last in " ".join(chunk.imports))


# --- edges --------------------------------------------------------------------------------------------


@dataclass
class _Linker:
    """Makes the edges of documents, a batch at a time."""

    reader: StoreReader
    targets: Targets
    named: re.Pattern[str] | None  # any service, by name
    heard: Hearing

    def __post_init__(self) -> None:
        self.targets.meet(each.card for own in self.heard.documents.values() for each in own)

    def edges(self, batch: Sequence[str]) -> dict[str, list[Edge]]:
        spoken = {each: self._spoken(each) for each in batch}
        # Each reference once: in a batch, most of them come many times.
        self.targets.learn({reference for own in spoken.values() for each in own for reference in each.references})
        return {each: list(self._of_document(own)) for each, own in spoken.items()}

    def _spoken(self, document_id: str) -> list[Spoken]:
        heard = self.heard.documents.get(document_id)
        return self.heard.spoken(self.reader.document_chunks(document_id)) if heard is None else heard

    def _of_document(self, chunks: Sequence[Spoken]) -> Iterator[Edge]:
        spelled = dict.fromkeys(each for chunk in chunks for each in chunk.imports)
        imports = import_keys(path for each in spelled for path in import_paths(each))
        imported: set[str] = set()
        known: dict[tuple[str, frozenset[str]], dict[Reference, Card | None]] = {}
        for card, references, _, prose in chunks:
            named = self._services_in(prose)
            if not named and not references:
                continue
            services = frozenset((*named, card.service_name) if card.service_name else named)
            # In one file, what a reference means depends on these alone, and many come again.
            meant = known.setdefault((card.family, services), {})
            around = Around(card, imports, services)
            for reference in references:
                if reference not in meant:
                    meant[reference] = self.targets.of(reference, around)
            targets = [(each, target) for each in references if (target := meant[each]) and target.id != card.id]
            for edge in self._of_chunk(card.id, targets, named):
                if edge.relation == "imports":  # the file's, and said by each of its chunks: once is enough
                    if edge.target_id in imported:
                        continue
                    imported.add(edge.target_id)
                yield edge

    def _of_chunk(self, own: ChunkId, targets: Iterable[tuple[Reference, Card]], services: set[str]) -> Iterator[Edge]:
        found: dict[ChunkId, Edge] = {}  # by target: one edge, the one that explains most
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

    def _services_in(self, prose: str) -> set[str]:
        if self.named is None or not prose:
            return set()
        return {match[0].lower() for match in self.named.finditer(prose)} & self.targets.services.keys()


def _any_of(services: Iterable[str]) -> re.Pattern[str] | None:
    """A service's name as a whole: `auth` does not stand in `auth-service` (R-09)."""
    names = sorted((re.escape(name) for name in services if not common(name)), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(names)})(?![A-Za-z0-9_-])", re.IGNORECASE) if names else None
