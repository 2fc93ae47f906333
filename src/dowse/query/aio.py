"""Async facade: queries run in threads, so that an event loop never waits for them.

asyncio is imported by the first call: it costs a command line 20 ms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.query.stream import Event
    from dowse.types import QueryRequest, QueryResult, ScoredChunk


class AsyncQueries:
    """Async calls of `query` and `retrieve`, for an engine and for every retriever."""

    if TYPE_CHECKING:

        def query(self, text: str | QueryRequest, **fields: Any) -> QueryResult: ...

        def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]: ...

    async def aquery(self, text: str | QueryRequest, **fields: Any) -> QueryResult:
        """Answer as `query` does."""
        import asyncio

        return await asyncio.to_thread(self.query, text, **fields)

    async def aretrieve(self, query: str, top_k: int | None = None, **options: Any) -> Sequence[ScoredChunk]:
        """Return the hits as `retrieve` does."""
        import asyncio

        return await asyncio.to_thread(self.retrieve, query, top_k, **options)


class AsyncStream(AsyncQueries):
    """Async calls of an engine."""

    if TYPE_CHECKING:

        def stream(self, text: str | QueryRequest, **fields: Any) -> Iterator[Event]: ...

    async def astream(self, text: str | QueryRequest, **fields: Any) -> AsyncIterator[Event]:
        """Yield the events of `stream`. A reader who stops early stops the query after the stage that runs."""
        import asyncio

        events = self.stream(text, **fields)
        while (event := await asyncio.to_thread(next, events, None)) is not None:
            yield event
