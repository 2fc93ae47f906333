"""Stored documents that changed go in; edges to what they speak of, in all other documents, go into the store.

Nothing here is read from disk, so it can be done again at any time: what waits to be linked is in the store, and an
interrupted run is taken up by the next. Documents that did not change are linked again when a chunk they were tied to
is gone, or when a name came or went that they speak of; the words index tells who does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dowse.filters import Filter, by_corpus
from dowse.identity import number_id
from dowse.ingest.link_cards import card_of, import_keys
from dowse.ingest.link_refs import SERVICE_WEIGHT, WEIGHTS, Reference, common, import_paths, references_of
from dowse.ingest.link_targets import Around, Targets
from dowse.names import MODULE, SEPARATORS, SYMBOL, THREAD
from dowse.ports import Progress, Reporter, Store, StoreReader, StoreWriter
from dowse.text import Tokenizer
from dowse.types import Chunk, Edge

MAKER = "link"
BATCH = 64  # documents a transaction; chosen
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


def link(store: Store, writer: StoreWriter, report: Reporter | None = None) -> LinkReport:
    """Link what waits for it. The documents must be published."""
    reader = store.reader()
    _wake(store, reader, writer)
    waiting = writer.unlinked(MAKER)
    if not waiting:
        return LinkReport()
    services = {each.name: each for each in reader.services() if each.chunk_ids and not each.external}
    linker = _Linker(reader, Targets(reader, services), _any_of(services))
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
    renamed = writer.renamed()
    if not renamed:
        return
    if len(writer.unlinked(MAKER)) >= reader.stats.documents:
        speakers: set[str] = set()  # all of them wait already
    elif len(renamed) > MOST_NAMES:
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

    def edges(self, batch: Sequence[str]) -> dict[str, list[Edge]]:
        chunks = {each: self.reader.document_chunks(each) for each in batch}
        references = {chunk.id: references_of(chunk) for own in chunks.values() for chunk in own}
        self.targets.learn(reference for own in references.values() for reference in own)
        return {each: list(self._of_document(own, references)) for each, own in chunks.items()}

    def _of_document(self, chunks: Sequence[Chunk], references: dict[str, list[Reference]]) -> Iterator[Edge]:
        spelled = dict.fromkeys(each for chunk in chunks for each in chunk.imports)
        imports = import_keys(path for each in spelled for path in import_paths(each))
        imported: set[str] = set()
        for chunk in chunks:
            named = self._services_in(chunk) if chunk.level == "chunk" else set()
            if not named and not references[chunk.id]:
                continue
            services = frozenset((*named, *((chunk.service_name,) if chunk.service_name else ())))
            for edge in self._of_chunk(Around(card_of(chunk), imports, services), references[chunk.id], named):
                if edge.relation == "imports":  # the file's, and said by each of its chunks: once is enough
                    if edge.target_id in imported:
                        continue
                    imported.add(edge.target_id)
                yield edge

    def _of_chunk(self, around: Around, references: Iterable[Reference], services: set[str]) -> Iterator[Edge]:
        own = around.card.id
        found: dict[str, Edge] = {}  # by target: one edge, the one that explains most
        for reference in references:
            target = self.targets.of(reference, around)
            if target is None:
                continue
            because = _BECAUSE[reference.relation].format(reference.spelled)
            edge = Edge(own, target.id, reference.relation, WEIGHTS[reference.relation], because)
            earlier = found.get(target.id)
            if earlier is None or _RANK[edge.relation] < _RANK[earlier.relation]:
                found[target.id] = edge
        yield from found.values()
        for name in sorted(services)[:MOST_SERVICES]:
            home = self.targets.declared(name)
            if home and own not in self.targets.services[name].chunk_ids and home.id not in found:
                yield Edge(own, home.id, "mentions", SERVICE_WEIGHT, f"it names the service {name}")

    def _services_in(self, chunk: Chunk) -> set[str]:
        if self.named is None or chunk.corpus_type.startswith("CODE"):
            return set()
        return {match[0].lower() for match in self.named.finditer(chunk.text)} & self.targets.services.keys()


def _any_of(services: Iterable[str]) -> re.Pattern[str] | None:
    """A service's name as a whole: `auth` does not stand in `auth-service` (R-09)."""
    names = sorted((re.escape(name) for name in services if not common(name)), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(names)})(?![A-Za-z0-9_-])", re.IGNORECASE) if names else None
