"""A worker process: tasks come in on its standard input, outcomes go out on its standard output, one frame each.

A frame is a length in four bytes and a message. The first one tells that the worker is ready; it ends with its input.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import IO

import msgspec

from dowse.ingest.readers.registry import find_readers
from dowse.ingest.reading.limits import rare_collections
from dowse.ingest.reading.read_file import Outcome, Taker, Task

LENGTH_BYTES = 4
OUT_OF_MEMORY = "reading it takes more memory than a worker has; it was skipped"


def main(memory_bytes: int) -> None:
    """A bug in a reader ends the worker with its traceback on stderr, where the one who leads the crew finds it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the one who leads
    take = Taker(find_readers(), {})
    _limit(memory_bytes)
    # What a parser prints must not get between the frames.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    write_frame(out, b"")
    decoder = msgspec.msgpack.Decoder(Task)
    with rare_collections():
        while frame := _read_frame(sys.stdin.buffer):
            outcome = _outcome(take, decoder.decode(frame))
            write_frame(out, msgspec.msgpack.encode(outcome))
            if outcome.problem == OUT_OF_MEMORY:
                return  # what is left of this process is not to be trusted


def _outcome(take: Taker, task: Task) -> Outcome:
    try:
        return take(task)
    except MemoryError:
        return Outcome(problem=OUT_OF_MEMORY)


def _limit(memory_bytes: int) -> None:
    """Where the system lets us. Not more than it was, in case someone set less."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))


def write_frame(out: IO[bytes], message: bytes) -> None:
    data = memoryview(len(message).to_bytes(LENGTH_BYTES, "little") + message)
    while data:
        data = data[out.write(data) :]


def _read_frame(stream: IO[bytes]) -> bytes:
    """Empty at the end of the stream."""
    head = stream.read(LENGTH_BYTES)
    return stream.read(int.from_bytes(head, "little")) if len(head) == LENGTH_BYTES else b""
