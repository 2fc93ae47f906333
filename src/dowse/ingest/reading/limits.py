"""Work goes in and runs in this process; if it takes too long, OverdueError comes out instead of a result. How often
Python looks for garbage meanwhile is set here, too.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

FILE_S = 10.0  # "no single file takes more than 10 s"
WORKER_BYTES = 768 << 20  # address space of a worker; chosen: two of them and the writer stay under 1.5 GB
OBJECTS_PER_LOOK = 200_000  # chosen: some 40 MB; 50,000 take 1.5 % longer, and 7 MB less of 700


class OverdueError(BaseException):
    """Time is up. Not an Exception, so that no parser that catches everything keeps it."""


def overdue(limit_s: float) -> str:
    return f"reading it took more than {limit_s:g} s; it was skipped"


def can_interrupt() -> bool:
    """Whether this thread can be woken by an alarm."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """Raises OverdueError in the block when its time is up. For the main thread; an alarm set before goes on after."""

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
    """Python looks for cycles of garbage whenever there are 700 objects more than before. What is made of files are
    trees of values, which have none: looking took 7 % of indexing them.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(OBJECTS_PER_LOOK, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
