"""Where requests do their work: calls enter the event loop's side, answers leave it, and the loop itself never works.

So many at the same time, so many waiting, so many of one client; a request beyond that is refused at once, because an
answer that comes too late helps nobody.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from dowse.errors import DeadlineError
from dowse.serve.http.options import Limits
from dowse.serve.http.problems import RETRY_AFTER_S, RefusedError

T = TypeVar("T")


class Room:
    """Bounded threads. Used from one event loop only, so its counters need no lock."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.under_way = 0
        self.refused = 0
        self._clients: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="dowse-request")

    async def run(self, client: str, work: Callable[[], T]) -> T:
        """The work's answer. DeadlineError when it takes too long: its place stays taken until it is done."""
        async with self.place(client) as stay:
            return await self.within(stay, work)

    async def within(self, stay: Stay, work: Callable[[], T]) -> T:
        """One call of a request that has its place already."""
        future = self._threads.submit(work)
        stay.working = future
        try:
            async with asyncio.timeout(self.limits.request_s):
                # When nobody waits for it any more, work that has not begun is cancelled with this, and work under way
                # goes on to its end; what it says, even an error, goes nowhere.
                return await asyncio.wrap_future(future)
        except TimeoutError as err:
            raise DeadlineError(f"no answer after {self.limits.request_s:g} s; ask for less, or try again") from err

    async def each(self, client: str, make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        """What an iterator yields. When nobody takes it any more, the iterator is closed and its work ends."""
        async with self.place(client) as stay:
            items = await self.within(stay, make)
            stay.at_end = getattr(items, "close", None)
            end = object()
            while (item := await self.within(stay, lambda: next(items, end))) is not end:
                yield item  # type: ignore[misc]  # object() is the end, and nothing else is

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[Stay]:
        """A place among those under way, given back when the work has truly ended."""
        limits = self.limits
        if self._clients[client] >= limits.per_client:
            self.refused += 1
            detail = f"{limits.per_client} requests of yours are under way; wait for one of them"
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, detail, retry_after_s=RETRY_AFTER_S)
        if self.under_way >= limits.concurrency + limits.queue:
            self.refused += 1
            detail = "the server has as many requests as it can take; try again in a moment"
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after_s=RETRY_AFTER_S)
        self.under_way += 1
        self._clients[client] += 1
        stay = Stay()
        try:
            yield stay
        finally:
            loop = asyncio.get_running_loop()
            if stay.working is None or stay.working.done():
                self._leave(client, stay)
            else:
                stay.working.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave, client, stay))

    def _leave(self, client: str, stay: Stay) -> None:
        if stay.at_end is not None:
            stay.at_end()
        self.under_way -= 1
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


class Stay:
    """One request's place: what it is doing, and what is to be done when it goes."""

    def __init__(self) -> None:
        self.working: Future[Any] | None = None
        self.at_end: Callable[[], object] | None = None
