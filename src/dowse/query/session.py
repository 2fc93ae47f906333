"""Session of one query: the reader's ports, where a port that the store lacks raises an error.

A store needs no word search, vectors, edges or services to be searched. A stage that uses a missing port fails with
UnavailableError, so the pipeline skips it and names it in `degraded`, as for any other part that is down.
Separate from `pipeline`, because only this module checks which methods a store has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from dowse.errors import UnavailableError
from dowse.ports import Bm25, ChunkGraph, ChunkReader, QuerySession, ServiceReader, VectorSearch, WordSearch

_PORTS: Mapping[str, type] = {
    "word search": WordSearch,
    "vector search": VectorSearch,
    "chunk graph": ChunkGraph,
    "service graph": ServiceReader,
}
_PORT_OF_METHOD = {method: name for name, port in _PORTS.items() for method in vars(port) if not method.startswith("_")}


def open_session(reader: ChunkReader, constants: Bm25) -> QuerySession:
    """The reader's own session if it has any, else the reader itself, with the ports it lacks."""
    opened: Callable[[Bm25], ChunkReader] | None = getattr(reader, "session", None)
    session = reader if opened is None else opened(constants)
    missing = {port for method, port in _PORT_OF_METHOD.items() if not hasattr(session, method)}
    return cast(QuerySession, PartialSession(session, missing) if missing else session)


def lacks_vectors(session: QuerySession) -> str:
    """The reason why no dense leg can run on this store; empty if one can."""
    return session.lacks("vector search") if isinstance(session, PartialSession) else ""


class PartialSession:
    """A session of a store that lacks some ports."""

    def __init__(self, session: ChunkReader, missing: set[str]) -> None:
        self._session = session
        self._missing = missing

    def lacks(self, port: str) -> str:
        return f"this store has no {port}" if port in self._missing else ""

    def __getattr__(self, name: str) -> Any:
        reason = self.lacks(_PORT_OF_METHOD.get(name, ""))
        return _raiser(reason) if reason else getattr(self._session, name)


def _raiser(reason: str) -> Callable[..., NoReturn]:
    def unavailable(*given: object, **named: object) -> NoReturn:
        raise UnavailableError(reason)

    return unavailable
