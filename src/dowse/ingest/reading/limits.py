"""Limits of reading: a time limit by alarm, few results ahead of the writer, rarer garbage collection."""

from __future__ import annotations

import gc
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

FILE_S = 10.0  # chosen: a file that takes longer is broken or hostile
WORKER_BYTES = 768 << 20  # address space of a worker; chosen: two of them and the writer stay under 1.5 GB
OBJECTS_PER_COLLECTION = 200_000  # some 40 MB; measured: 50,000 take 1.5 % longer and save 7 MB of 700


class OverdueError(BaseException):
    """Time limit reached. Not an Exception, so that no parser catches it."""


def overdue(limit_s: float) -> str:
    return f"skipped: reading took more than {limit_s:g} s"


def in_order(
    threads: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], ahead: int
) -> Iterator[tuple[T, R]]:
    """Yield items with their results, in order; at most `ahead` of them are in progress or done at a time."""
    under_way: deque[tuple[T, Future[R]]] = deque()
    for item in items:
        under_way.append((item, threads.submit(work, item)))
        if len(under_way) >= ahead:
            first, future = under_way.popleft()
            yield first, future.result()
    for item, future in under_way:
        yield item, future.result()


def can_interrupt() -> bool:
    """Test whether an alarm can interrupt this thread."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """Raise OverdueError in the block after `limit_s`. Main thread only; restores an earlier alarm."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGALRM, ring)
    old_s, old_interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if old_s:
            signal.setitimer(signal.ITIMER_REAL, max(old_s - (limit_s - left_s), 1e-3), old_interval_s)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage more rarely: documents have no cycles, and collections took 7 % of indexing."""
    before = gc.get_threshold()
    gc.set_threshold(max(OBJECTS_PER_COLLECTION, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
