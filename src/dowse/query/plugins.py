"""Plug-ins as legs of the pipeline: vector stores, word indexes, service graphs and further legs of the user.

A part of another system needs no port of Dowse: a vector store with `search(vector, top_k=…)`, a word index with
`query(tokens, top_k)` or `search(text, n_results)`, a graph with `get_neighborhood(services)`. Rows bring their text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from dowse.errors import BadRequestError, UnavailableError
from dowse.filters import Eq, Filter, In, matches
from dowse.identity import id_number, number_id
from dowse.ports import ChunkReader, Embedder, Found, Ids, Mask, SearchLeg, StoreStats
from dowse.query.guard import in_time
from dowse.query.rows import PluginRow, rows_of
from dowse.query.stages.services import ServiceGraph
from dowse.query.stages.state import QueryState, Ranking
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, DocumentInfo, Leg, ServiceContext
from dowse.views import FrozenDict

_FETCHES = ("get_by_ids", "get_chunks_by_ids", "get")
_COUNTS = ("top_k", "n_results", "k", "limit", "n")
_FILTERED_BY = {
    "corpus_filter": "corpus_type", "service_filter": "service_name", "repo_filter": "repo_name",
    "paper_id": "document_id", "document_id": "document_id", "section_type": "section_type",
}  # fmt: skip


def checked_legs(legs: Iterable[SearchLeg]) -> tuple[SearchLeg, ...]:
    """Return the legs, or raise BadRequestError for one that cannot be called by name."""
    found = tuple(legs)
    for leg in found:
        if not isinstance(getattr(leg, "name", None), str) or not callable(getattr(leg, "search", None)):
            raise BadRequestError(f"leg {type(leg).__name__} needs a `name` and a method `search(query, k, where=…)`")
    if len({leg.name for leg in found}) < len(found):
        raise BadRequestError(f"two legs have one name: {', '.join(leg.name for leg in found)}; rename one")
    return found


class PluginLeg(msgspec.Struct, frozen=True):
    """Stage that adds the lists of a user's leg, of chunks that exist and pass the filter."""

    leg: SearchLeg
    reader: ChunkReader
    depth: int
    name: Leg

    def __call__(self, state: QueryState, /) -> QueryState:
        where = state.query.where
        added = (
            Ranking(self.name, self._found(each.text, where), variant=at)
            for at, each in enumerate(state.query.wordings)
        )
        return state.changed(lists=(*state.lists, *added))

    def _found(self, text: str, where: Filter) -> Found:
        leg = self.leg if isinstance(self.leg, RowLeg) else row_leg(self.leg, None)
        rows = leg.search(text, self.depth, where=where)[: self.depth]
        ids = np.array([id_number(row.id) for row in rows], np.uint64)
        scores = np.array([row.score for row in rows], np.float64)
        best = np.argsort(-scores, kind="stable")
        ids, scores = ids[best], scores[best]
        for at in range(1, len(scores)):  # of equal scores, the order of the leg counts
            scores[at] = min(scores[at], np.nextafter(scores[at - 1], -np.inf))
        passing = self.reader.passing(ids, where) if len(ids) else np.zeros(0, np.bool_)
        return Found(ids[passing], scores[passing])


class RowStore:
    """Chunks of the rows that plug-ins returned for one query. A filter applies when their text is fetched.

    Rows without text are fetched from `source`, if it has one of the usual methods, or are dropped.
    """

    def __init__(self, where: Filter, source: Any = None) -> None:
        self.stats = StoreStats(0, 0, 0)
        self._where, self._source = where, source
        self._chunks: dict[ChunkId, Chunk] = {}
        self._bare: dict[ChunkId, str] = {}  # ids of rows without text

    def add(self, rows: Iterable[PluginRow]) -> None:
        for row in rows:
            key = number_id(id_number(row.id))
            if row.chunk is None:
                self._bare[key] = row.id
            else:
                self._chunks[key] = row.chunk

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        missing = [self._bare[each] for each in ids if each not in self._chunks and each in self._bare]
        method = next((name for name in _FETCHES if hasattr(type(self._source), name)), None)
        if missing and method is not None:
            what = f"vector store {type(self._source).__name__}"
            found = in_time(lambda: getattr(self._source, method)(missing), what)
            self.add(rows_of(found.values() if isinstance(found, Mapping) else found, what))
        known = {each: self._chunks[each] for each in ids if each in self._chunks}
        return {each: chunk for each, chunk in known.items() if matches(chunk, self._where)}

    def passing(self, ids: Ids, where: Filter) -> Mask:
        return np.ones(len(ids), np.bool_)  # `get` filters: a row may have its text from another leg

    def document(self, document_id: str) -> DocumentInfo | None:
        return None

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        return ()

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        return ()


class RowLeg(msgspec.Struct, frozen=True):
    """Leg over a part of another system, whose rows bring their chunks."""

    name: Leg
    find: Callable[[str, int, Filter], Any]
    store: RowStore | None

    def search(self, query: str, k: int, *, where: Filter = ()) -> list[PluginRow]:
        rows = rows_of(self.find(query, k, where), f"leg {self.name}")
        if self.store is not None:
            self.store.add(rows)
        return rows


def row_leg(leg: SearchLeg, rows: RowStore | None) -> RowLeg:
    """Return a leg of the user; without a store, its results bring their text."""
    search, what = leg.search, f"leg {leg.name}" if rows is None else leg.name
    return RowLeg(leg.name, lambda query, k, where: in_time(lambda: list(search(query, k, where=where)), what), rows)


class RetrieverLeg(msgspec.Struct, frozen=True):
    """Leg over a whole retriever of another system."""

    retriever: Any
    alpha: float | None = None  # passed on, where its `retrieve` takes it
    name: str = "retriever"

    def search(self, query: str, k: int, *, where: Filter = ()) -> Any:
        return _called(self.retriever.retrieve, query, k, where, alpha=self.alpha)


def vector_leg(store: Any, embedder: Embedder | None, rows: RowStore | None) -> RowLeg:
    """Return the leg of a vector store with `search(vector, …)` or `search_chunks(vector, …)`."""
    method = getattr(store, "search", None) or store.search_chunks

    def find(query: str, k: int, where: Filter) -> Any:
        if embedder is None:
            raise UnavailableError("no embedder is given for the vector store")
        vector = embedder.embed([query], role="query")[0]
        return in_time(lambda: list(_called(method, vector, k, where)), f"vector store {type(store).__name__}")

    return RowLeg("dense", find, rows)


def word_legs(index: Any, tokenizer: Tokenizer, rows: RowStore | None, *, by: Sequence[str]) -> tuple[RowLeg, ...]:
    """Return the legs of a word index: two for `query(tokens, …)`, one for `search(text, …)`. `by`: preferred first."""
    name = next((each for each in by if hasattr(index, each)), "search")
    what = f"word index {type(index).__name__}"

    def legs_of(leg: Leg) -> RowLeg:
        def find(query: str, k: int, where: Filter) -> Any:
            built = getattr(index, "is_built", None)
            if built is not None and not in_time(built, what):
                raise UnavailableError("the word index is not built; call build_index first")
            given = tokenizer.query(query)[leg] if name == "query" else query
            return in_time(lambda: list(_called(getattr(index, name), given, k, where)), what)

        return RowLeg(leg, find, rows)

    return tuple(legs_of(leg) for leg in (("bm25_code", "bm25_nlp") if name == "query" else ("bm25_nlp",)))


def _called(method: Callable[..., Any], given: Any, k: int, where: Filter, **more: Any) -> Any:
    """Call a search method with the number of results, and with the filters that it can take.

    Rows are filtered again: a part may ignore what it cannot take.
    """
    parameters = inspect.signature(method).parameters
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    count = next((name for name in _COUNTS if name in parameters), "top_k" if anything else None)
    named: dict[str, Any] = {} if count is None else {count: k}
    named |= {name: value for name, value in more.items() if value is not None and (name in parameters or anything)}
    for name, field in _FILTERED_BY.items():
        if (name in parameters or anything) and (values := _values(where, field)):
            if name in ("corpus_filter", "repo_filter"):
                named[name] = values
            elif len(values) == 1:
                named[name] = values[0]
    if "where" in parameters:
        named["where"] = where
    return method(given, **named) if count else method(given, k, **named)


def _values(where: Filter, field: str) -> list[Any]:
    """Return the values that a filter allows for a field; none if it does not restrict the field."""
    for clause in where:
        if isinstance(clause, In | Eq) and clause.field == field:
            return list(clause.values) if isinstance(clause, In) else [clause.value]
    return []


class GivenServices(msgspec.Struct, frozen=True):
    """Stage that adds the neighbourhood of the services of shown hits from a graph of the user."""

    graph: Any
    name: str = "services"

    def __call__(self, state: QueryState, /) -> QueryState:
        names = sorted({name for hit in state.hits[: state.query.k] if (name := hit.chunk.service_name)})
        what = f"service graph {type(self.graph).__name__}"
        found = in_time(lambda: self._neighbourhood(names), what)
        if not isinstance(found, Mapping):
            raise UnavailableError(f"{what} returned {type(found).__name__}, not services by name")
        return state.changed(service_context=FrozenDict((str(name), _context(name, of)) for name, of in found.items()))

    def _neighbourhood(self, names: list[str]) -> Any:
        if isinstance(self.graph, ServiceGraph):
            return self.graph.neighbourhood(names)
        if hasattr(self.graph, "get_neighborhood"):
            return self.graph.get_neighborhood(names)
        return ServiceGraph(tuple(self.graph.services()), tuple(self.graph.service_edges())).neighbourhood(names)


def _context(name: Any, given: Any) -> ServiceContext:
    if isinstance(given, ServiceContext):
        return given
    of: Callable[[str], Any] = given.get if isinstance(given, Mapping) else lambda key: getattr(given, key, None)
    try:
        calls, called_by = (tuple(map(str, of(key) or ())) for key in ("calls", "called_by"))
        edges = tuple(FrozenDict({str(key): value for key, value in dict(edge).items()}) for edge in of("edges") or ())
    except (TypeError, ValueError) as err:
        raise UnavailableError(f"the service graph returned no context for {name} ({err})") from err
    return ServiceContext(str(name), calls, called_by, edges)
