"""Reference store in memory: short, slow, obviously right. Every other store must agree with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property

import msgspec
import numpy as np
from msgspec import structs

from dowse.errors import ModelMismatchError
from dowse.filters import Filter, check, matches
from dowse.identity import embedded_text, id_number, number_id, searchable_text
from dowse.link_names import Name, names_of
from dowse.ports import STANDARD, Bm25, Found, Ids, Mask, Matrix, Pending, StoreStats, Values, Vector
from dowse.store.kernels.bm25 import attainable, length_norm, query_weights, term_score
from dowse.store.segments.vectors import check_vector, check_vectors
from dowse.store.sql.links import STRUCTURAL, edge_order, folded, name_order
from dowse.store.sql.services import checked
from dowse.tokenizer import Tokenizer
from dowse.types import (
    Chunk,
    ChunkId,
    Document,
    DocumentInfo,
    Edge,
    Leg,
    Service,
    ServiceEdge,
    ServiceFact,
    Source,
)


class _Words(msgspec.Struct, frozen=True):
    """Words of a chunk in one leg. Stop words have counts, but do not lengthen the chunk."""

    counts: Counter[str]
    length: int


_Documents = dict[str, tuple[Document, DocumentInfo]]
_Made = dict[tuple[ChunkId, ChunkId, str], tuple[Edge, str]]  # ends and relation → the edge and who made it


class _State(msgspec.Struct):
    documents: _Documents = {}
    vectors: dict[str, Vector] = {}  # by content hash
    services: tuple[Service, ...] = ()
    services_due: bool = False
    service_edges: tuple[ServiceEdge, ...] = ()
    edges: dict[str, _Made] = {}  # by document
    linked: set[tuple[str, str]] = set()  # document and maker
    renamed: set[tuple[str, str]] = set()
    model: str | None = None
    dimension: int | None = None


class MemoryStore:
    """Store in dictionaries, lost when closed. Satisfies `ports.Store` and `ports.StoreWriter`."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._facts: dict[str, str] = {}
        self._sources: dict[str, Source] = {}
        self._written = _State()
        self._reader = MemoryReader(_State(), Tokenizer())

    def reader(self) -> MemoryReader:
        return self._reader

    def writer(self, *, wait_s: float = 0.0) -> MemoryStore:
        return self

    def sources(self) -> Sequence[Source]:
        return sorted(self._sources.values(), key=lambda source: source.name)

    def fact(self, key: str) -> str | None:
        return self._facts.get(key)

    def set_fact(self, key: str, value: str) -> None:
        self._facts[key] = value

    def documents(self, source: str | None = None, under: str = "") -> Iterable[DocumentInfo]:
        found = [info for _, info in self._written.documents.values() if source in (None, info.source)]
        return [each for each in found if not under or (each.path + "/").startswith((f"{under}/", f"{under}!/"))]

    def paths(self, source: str) -> Sequence[str]:
        return [info.path for info in self.documents(source)]

    def close(self) -> None:
        self.publish()

    def add_source(self, source: Source) -> None:
        self._sources[source.name] = source

    def remove_source(self, name: str) -> None:
        self._sources.pop(name, None)

    def put(self, documents: Sequence[Document]) -> None:
        for document in {each.id: each for each in documents}.values():  # of two with one id, the last counts
            self._change(document.id, document)

    def remove(self, document_ids: Collection[str]) -> int:
        return sum(self._change(each, None) for each in document_ids)

    def _change(self, document_id: str, new: Document | None) -> bool:
        """Replace a document, or delete it if `new` is None. Return whether there was an old one."""
        state = self._written
        old = state.documents.pop(document_id, (None, None))[0]
        state.edges.pop(document_id, None)
        state.linked = {each for each in state.linked if each[0] != document_id}
        if new:
            state.documents[new.id] = (new, document_info(new, self._now()))
            state.edges[new.id] = _with({}, new.edges, "")
        names = [{(name.kind, name.name) for name in names_of(each)} if each else set() for each in (old, new)]
        state.renamed |= names[0] ^ names[1]
        kept = {chunk.id for chunk in new.chunks} if new else set()
        lost = {chunk.id for chunk in old.chunks} - kept if old else set()
        torn = {each for each, made in state.edges.items() if any(target in lost for _, target, _ in made)}
        state.linked = {each for each in state.linked if each[0] not in torn}
        state.services_due |= any(each.facts for each in (old, new) if each)
        return old is not None

    def put_edges(self, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
        state = self._written
        for document_id, own in edges.items():
            if document_id in state.documents:
                others = {key: made for key, made in state.edges[document_id].items() if made[1] != maker}
                state.edges[document_id] = _with(others, own, maker)
                state.linked.add((document_id, maker))
        self._show(self._reader.documents)

    def unlinked(self, maker: str) -> Sequence[str]:
        return [each for each in self._written.documents if (each, maker) not in self._written.linked]

    def renamed(self) -> Sequence[tuple[str, str]]:
        return sorted(self._written.renamed)

    def relink(self, maker: str, document_ids: Collection[str]) -> None:
        self._written.linked -= {(each, maker) for each in document_ids}
        self._written.renamed = set()

    def put_services(self, services: Sequence[Service], edges: Sequence[ServiceEdge]) -> None:
        nodes, links = checked(services, edges)
        was, now = ({each.name for each in all_} for all_ in (self._written.services, nodes))
        self._written.renamed |= {("service", name) for name in was ^ now}
        self._written.services, self._written.service_edges = nodes, links
        self._written.services_due = False

    def service_facts(self) -> Sequence[ServiceFact] | None:
        found = [fact for document, _ in self._written.documents.values() for fact in document.facts]
        return found if self._written.services_due else None

    def publish(self) -> None:
        self._show(dict(self._written.documents))

    def use_model(self, name: str, dimension: int) -> None:
        if self._written.model not in (None, name):
            raise ModelMismatchError(f"the store has vectors of {self._written.model}, not of {name}")
        if self._written.dimension not in (None, dimension):
            raise ModelMismatchError(f"{name} gives {dimension} dimensions, the store has {self._written.dimension}")
        self._written.model, self._written.dimension = name, dimension
        self._show(self._reader.documents)

    def pending(self, limit: int) -> Sequence[Pending]:
        missing = {
            chunk.content_hash: Pending(chunk.content_hash, embedded_text(chunk))
            for chunk in self._reader.searchable.values()
            if chunk.content_hash not in self._written.vectors
        }
        return list(missing.values())[:limit]

    def pending_count(self) -> int:
        found = self._reader.searchable.values()
        return sum(chunk.content_hash not in self._written.vectors for chunk in found)

    def put_vectors(self, content_hashes: Sequence[str], vectors: Matrix) -> None:
        check_vectors(vectors, len(content_hashes), self._written.dimension or 0)
        self._written.vectors.update(zip(content_hashes, vectors, strict=True))
        self._show(self._reader.documents)

    def compact(self) -> None:
        self.publish()

    def _show(self, documents: _Documents) -> None:
        """Publish a new snapshot: these documents, and all vectors there are."""
        written = self._written
        shown = structs.replace(written, documents=documents, vectors=dict(written.vectors), edges=dict(written.edges))
        self._reader = MemoryReader(shown, self._reader.tokenizer)


class MemoryReader:
    """Snapshot of a MemoryStore. Satisfies `ports.StoreReader`."""

    def __init__(self, state: _State, tokenizer: Tokenizer, constants: Bm25 = STANDARD) -> None:
        self.tokenizer = tokenizer
        self._constants = constants
        self._state = state
        self.documents = state.documents
        self.chunks = {chunk.id: chunk for document, _ in state.documents.values() for chunk in document.chunks}
        self.searchable = {each.id: each for each in self.chunks.values() if each.level == "chunk"}
        self._words: dict[Leg, dict[ChunkId, _Words]] = {"bm25_code": {}, "bm25_nlp": {}}
        for each in self.searchable.values():
            terms = tokenizer(searchable_text(each))
            self._words["bm25_code"][each.id] = _Words(Counter(terms.code), len(terms.code))
            self._words["bm25_nlp"][each.id] = _Words(Counter([*terms.prose, *terms.stops]), len(terms.prose))

    @property
    def stats(self) -> StoreStats:
        return StoreStats(
            documents=len(self._state.documents),
            chunks=len(self.searchable),
            vectors=sum(chunk.content_hash in self._state.vectors for chunk in self.searchable.values()),
            model=self._state.model,
            dimension=self._state.dimension,
        )

    def session(self, constants: Bm25 = STANDARD) -> MemoryReader:
        return self if constants == self._constants else MemoryReader(self._state, self.tokenizer, constants)

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        ids = [each.id for each in self._passing(where)]
        rows = [(id_number(each), score) for each in ids if (score := self._bm25(leg, terms, each)) > 0]
        return _best(rows, k)

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        check_vector(vector)
        found = [(each.id, self._state.vectors.get(each.content_hash)) for each in self._passing(where)]
        rows = [(id_number(each), float(vector @ own)) for each, own in found if own is not None]
        return _best(rows, k)

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Mapping[Leg, Values]:
        return {
            leg: np.array([self._bm25(leg, of_leg, number_id(int(each))) for each in ids], np.float64)
            for leg, of_leg in terms.items()
        }

    def score_vectors(self, vector: Vector, ids: Ids) -> Values:
        rows, exist = self.vectors(ids)
        return np.where(exist, (rows @ vector).astype(np.float64), np.nan)

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        dimension = self._state.dimension or 0
        found = [self._vector(number_id(int(each))) for each in ids]
        rows = [np.zeros(dimension, np.float32) if each is None else each for each in found]
        exist = np.array([each is not None for each in found], np.bool_)
        return np.array(rows, np.float32).reshape(len(found), dimension), exist

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        return {each: self._counted(self.chunks[each]) for each in ids if each in self.chunks}

    def neighbours(self, ids: Collection[ChunkId], *, incoming: bool = False) -> Sequence[Edge]:
        wanted = set(ids)
        edges = {edge for edge in self._edges if (edge.target_id if incoming else edge.source_id) in wanted}
        return sorted(edges, key=edge_order)

    def named(self, kind: str, names: Collection[str]) -> Sequence[Name]:
        wanted = {folded(each) for each in names}
        return [each for each in self._names if each.kind == kind and folded(each.name) in wanted]

    def names_from(self, kind: str, prefix: str, limit: int) -> Sequence[Name]:
        found = [each for each in self._names if each.kind == kind and folded(each.name).startswith(folded(prefix))]
        return found[:limit]

    def passing(self, ids: Ids, where: Filter) -> Mask:
        passing = {each.id for each in self._passing(where)}
        return np.array([number_id(int(each)) in passing for each in ids], np.bool_)

    def embedded(self, where: Filter) -> int:
        return sum(each.content_hash in self._state.vectors for each in self._passing(where))

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return [
            {
                leg: tuple(term for term in dict.fromkeys(of_leg) if self._bm25(leg, [term], number_id(int(each))) > 0)
                for leg, of_leg in terms.items()
            }
            for each in ids
        ]

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return {leg: attainable(of_leg, len(self.searchable), self._frequency(leg)) for leg, of_leg in terms.items()}

    def services(self) -> Sequence[Service]:
        return self._state.services

    def service_edges(self) -> Sequence[ServiceEdge]:
        return self._state.service_edges

    def document(self, document_id: str) -> DocumentInfo | None:
        found = self._state.documents.get(document_id)
        return found[1] if found else None

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        return [found for each in dict.fromkeys(document_ids) if (found := self.document(each))]

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        found = self._state.documents.get(document_id)
        return tuple(map(self._counted, found[0].chunks)) if found else ()

    @cached_property
    def _edges(self) -> list[Edge]:
        return [edge for each in self.documents for edge, _ in self._state.edges.get(each, {}).values()]

    @cached_property
    def _names(self) -> list[Name]:
        return sorted((name for each, _ in self.documents.values() for name in names_of(each)), key=name_order)

    @cached_property
    def _ties(self) -> dict[ChunkId, set[ChunkId]]:
        """Linked chunks of each chunk, without structural edges."""
        ties: dict[ChunkId, set[ChunkId]] = {}
        for edge in self._edges:
            if edge.relation not in STRUCTURAL and edge.source_id != edge.target_id:
                ties.setdefault(edge.source_id, set()).add(edge.target_id)
                ties.setdefault(edge.target_id, set()).add(edge.source_id)
        return ties

    def _counted(self, chunk: Chunk) -> Chunk:
        ties = self._ties.get(chunk.id)
        return structs.replace(chunk, connection_count=len(ties)) if ties else chunk

    def _passing(self, where: Filter) -> list[Chunk]:
        check(where)
        return [chunk for chunk in self.searchable.values() if matches(chunk, where)]

    def _vector(self, chunk_id: ChunkId) -> Vector | None:
        chunk = self.searchable.get(chunk_id)
        return self._state.vectors.get(chunk.content_hash) if chunk else None

    def _bm25(self, leg: Leg, terms: Sequence[str], chunk_id: ChunkId) -> float:
        words = self._words[leg]
        own = words.get(chunk_id)
        if own is None:
            return 0.0
        mean = max(sum(each.length for each in words.values()) / len(words), 1.0)
        weights = query_weights(terms, len(words), self._frequency(leg))
        return sum(
            term_score(weight, own.counts[term], length_norm(self._constants, own.length, mean))
            for term, weight in weights.items()
            if term in own.counts
        )

    def _frequency(self, leg: Leg) -> Callable[[str], int]:
        """Return the function that counts the chunks that hold a term."""
        return lambda term: sum(term in each.counts for each in self._words[leg].values())


def document_info(document: Document, now: datetime) -> DocumentInfo:
    return DocumentInfo(
        id=document.id,
        source=document.source,
        path=document.path,
        title=document.title,
        content_hash=document.content_hash,
        chunk_count=sum(chunk.level == "chunk" for chunk in document.chunks),
        size_bytes=document.size_bytes,
        modified_ns=document.modified_ns,
        indexed_at=now,
        meta=document.meta,
    )


def _with(made: _Made, edges: Iterable[Edge], maker: str) -> _Made:
    """Add edges; of two equal ones the first stays."""
    new = {(edge.source_id, edge.target_id, edge.relation): (edge, maker) for edge in reversed(list(edges))}
    return new | made


def _best(rows: list[tuple[int, float]], k: int) -> Found:
    rows = sorted(rows, key=lambda row: (-row[1], row[0]))[:k]
    return Found(np.array([row[0] for row in rows], np.uint64), np.array([row[1] for row in rows], np.float64))
