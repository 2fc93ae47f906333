"""Admission control: bounded threads for the work of requests, and refusals beyond the bounds.

The event loop itself never works. A request beyond the limits is refused at once, because an answer that arrives after
its client has given up helps nobody.
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
from dowse.serve.http.options import ServerLimits
from dowse.serve.http.problems import RETRY_AFTER_S, RefusedError

T = TypeVar("T")


class Permit:
    """Admission of one request: its current work, and a callback for its end."""

    def __init__(self) -> None:
        self.work: Future[Any] | None = None
        self.on_release: Callable[[], object] | None = None


class AdmissionControl:
    """Bounded threads and queue. Used from one event loop only, so its counters need no lock."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.active = 0
        self.refused = 0
        self._clients: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="dowse-request")

    async def run(self, client: str, work: Callable[[], T]) -> T:
        """Run work in a thread. On DeadlineError its permit stays taken until the work has ended."""
        async with self.admit(client) as permit:
            return await self._call(permit, work)

    async def iterate(self, client: str, make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        """Yield the items of an iterator. When the caller stops, the iterator is closed and its work ends."""
        async with self.admit(client) as permit:
            items = await self._call(permit, make)
            permit.on_release = getattr(items, "close", None)
            end = object()
            while (item := await self._call(permit, lambda: next(items, end))) is not end:
                yield item  # type: ignore[misc]  # object() is the end, and nothing else is

    @asynccontextmanager
    async def admit(self, client: str) -> AsyncIterator[Permit]:
        """Hand out a permit and take it back when the work has truly ended."""
        self._check(client)
        self.active += 1
        self._clients[client] += 1
        permit = Permit()
        try:
            yield permit
        finally:
            loop = asyncio.get_running_loop()
            if permit.work is None or permit.work.done():
                self._release(client, permit)
            else:
                permit.work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._release, client, permit))

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _call(self, permit: Permit, work: Callable[[], T]) -> T:
        future = self._threads.submit(work)
        permit.work = future
        try:
            async with asyncio.timeout(self.limits.request_s):
                # When the client is gone, this cancels work that has not begun. Work that has begun runs to its end,
                # and its result or error is dropped.
                return await asyncio.wrap_future(future)
        except TimeoutError as err:
            raise DeadlineError(
                f"the query took longer than {self.limits.request_s:g} s; lower top_k, add a filter, or retry"
            ) from err

    def _check(self, client: str) -> None:
        limits = self.limits
        if self._clients[client] >= limits.per_client:
            status = HTTPStatus.TOO_MANY_REQUESTS
            detail = f"this client already has {limits.per_client} requests in progress; wait for one to finish"
        elif self.active >= limits.concurrency + limits.queue:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            detail = "the request queue of the server is full; retry in a moment"
        else:
            return
        self.refused += 1
        raise RefusedError(status, detail, retry_after_s=RETRY_AFTER_S)

    def _release(self, client: str, permit: Permit) -> None:
        if permit.on_release is not None:
            permit.on_release()
        self.active -= 1
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]
