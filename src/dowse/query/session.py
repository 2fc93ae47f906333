"""Session of one query over a store that a user wrote: its failures, and ports that it lacks, raise UnavailableError.

A store needs no word search, vectors, edges or services to be searched. A stage that uses a missing port fails with
UnavailableError, so the pipeline skips it and names it in `degraded`, as for any other part that is down.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from dowse.errors import UnavailableError
from dowse.link_names import Name
from dowse.ports import (
    Bm25,
    ChunkGraph,
    ChunkReader,
    Found,
    Ids,
    QuerySession,
    SearchableStore,
    ServiceReader,
    StoreStats,
    VectorSearch,
    WordSearch,
)
from dowse.query import guard
from dowse.query.guard import PluginGuard, is_own
from dowse.tracing import LOGGER
from dowse.types import Chunk, DocumentInfo, Edge, Leg, Service, ServiceEdge

T = TypeVar("T")
_PORTS: Mapping[str, type] = {
    "word search": WordSearch,
    "vector search": VectorSearch,
    "chunk graph": ChunkGraph,
    "service graph": ServiceReader,
}
_PORT_OF_METHOD = {method: name for name, port in _PORTS.items() for method in vars(port) if not method.startswith("_")}


def open_session(reader: ChunkReader, constants: Bm25) -> QuerySession:
    """Return the reader's own session if it has any, else the reader itself, with guards and the ports it lacks."""
    made: Callable[[Bm25], ChunkReader] | None = getattr(reader, "session", None)
    session = reader if made is None else PluginGuard(reader, "store").session(constants)
    complete = all(hasattr(session, method) for method in _PORT_OF_METHOD)
    return cast(QuerySession, session if complete and is_own(session) else SessionGuard(session))


def documents_of(store: SearchableStore) -> Sequence[DocumentInfo]:
    """Return the documents of a store; UnavailableError if a store of the user fails."""
    if is_own(store):
        return tuple(store.documents())
    found = guard.in_time(lambda: tuple(store.documents()), f"store {type(store).__name__}")
    return tuple(each for each in found if isinstance(each, DocumentInfo))


class SessionGuard(PluginGuard):
    """A session of a user's store. Every reply is checked; a failure or nonsense raises UnavailableError."""

    def __init__(self, session: Any) -> None:
        super().__init__(session, "store")
        self._hangs = ""
        self._missing = {port for method, port in _PORT_OF_METHOD.items() if not hasattr(session, method)}
        stats = self._call(lambda: session.stats)
        self.stats = stats if isinstance(stats, StoreStats) else StoreStats(0, 0, 0)

    def _call(self, work: Callable[[], T], timeout_s: float | None = None) -> T:
        """Call the store; one that hangs is not called again by the same query."""
        if self._hangs:
            raise UnavailableError(self._hangs)
        started_s = time.monotonic()
        try:
            return super()._call(work, timeout_s)
        except UnavailableError as err:
            self._hangs = str(err) if time.monotonic() - started_s >= guard.TIMEOUT_S else ""
            raise

    def lacks(self, port: str) -> str:
        return f"this store has no {port}" if port in self._missing else ""

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        """Return the terms for explanations; none if the store fails, since no stage asks for them."""
        try:
            return cast(Sequence[Mapping[Leg, tuple[str, ...]]], self.__getattr__("held_terms")(terms, ids))
        except UnavailableError as err:
            logging.getLogger(LOGGER).warning("explanation without terms: %s", err)
            return ({},) * len(ids)

    def __getattr__(self, name: str) -> Any:
        reason = self.lacks(_PORT_OF_METHOD.get(name, ""))
        method, check = None if reason else getattr(self._part, name), _CHECKS.get(name)

        def call(*given: Any, **named: Any) -> Any:
            if method is None:
                raise UnavailableError(reason)
            found = self._call(lambda: method(*given, **named))
            try:
                return found if check is None else check(found, given)
            except (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError) as err:
                raise UnavailableError(f"{self._name} returned nonsense from {name} ({err})") from err

        return call


def _found(found: Any, given: Sequence[Any]) -> Found:
    """Check what a search found: finite scores, each id once."""
    ids, scores = np.asarray(found.ids, np.uint64), np.asarray(found.scores, np.float64)
    if ids.ndim != 1 or ids.shape != scores.shape or not np.isfinite(scores).all():
        raise ValueError(f"{ids.shape} ids and {scores.shape} scores")
    _, first = np.unique(ids, return_index=True)
    kept = np.sort(first)
    return Found(ids[kept], scores[kept])


def _column(found: Any, count: int, *, unknown: bool = False) -> Any:
    scores = np.asarray(found, np.float64)
    if scores.shape != (count,) or not (unknown or np.isfinite(scores).all()) or np.isinf(scores).any():
        raise ValueError(f"{scores.shape} scores for {count} chunks")
    return scores


def _vectors(found: Any, given: Sequence[Any]) -> Any:
    rows, exist = np.asarray(found[0], np.float32), np.asarray(found[1], np.bool_)
    if rows.ndim != 2 or len(rows) != len(given[0]) or exist.shape != (len(rows),) or not np.isfinite(rows).all():
        raise ValueError(f"{rows.shape} vectors for {len(given[0])} chunks")
    return rows, exist


def _mask(found: Any, given: Sequence[Any]) -> Any:
    mask = np.asarray(found)
    if mask.shape != (len(given[0]),) or mask.dtype != np.bool_:
        raise ValueError(f"{mask.dtype} of {mask.shape} for {len(given[0])} chunks")
    return mask


def _each(kind: type) -> Callable[[Any, Sequence[Any]], Sequence[Any]]:
    def check(found: Any, given: Sequence[Any]) -> Sequence[Any]:
        rows = tuple(found)
        if not all(isinstance(each, kind) for each in rows):
            raise TypeError(f"not all are {kind.__name__}")
        return rows

    return check


def _terms(found: Any, given: Sequence[Any]) -> Any:
    rows = tuple(found)
    if len(rows) != len(given[1]) or not all(isinstance(each, Mapping) for each in rows):
        raise ValueError(f"{len(rows)} sets of terms for {len(given[1])} chunks")
    return rows


_CHECKS: Mapping[str, Callable[[Any, Sequence[Any]], Any]] = {
    "search_words": _found,
    "search_vectors": _found,
    "score_words": lambda found, given: {leg: _column(found[leg], len(given[1])) for leg in given[0]},
    "score_vectors": lambda found, given: _column(found, len(given[1]), unknown=True),
    "vectors": _vectors,
    "passing": _mask,
    "get": lambda found, given: dict(zip(found, _each(Chunk)(list(found.values()), given), strict=True)),
    "held_terms": _terms,
    "attainable_words": lambda found, given: {leg: float(_column([found[leg]], 1)[0]) for leg in given[0]},
    "neighbours": _each(Edge),
    "named": _each(Name),
    "names_from": _each(Name),
    "services": _each(Service),
    "service_edges": _each(ServiceEdge),
    "documents_of": _each(DocumentInfo),
    "document_chunks": _each(Chunk),
}
