"""Worker process: tasks arrive and results leave as messages on one connection.

The first, empty message reports that the worker is ready; the worker ends when the pool closes the connection.
"""

from __future__ import annotations

import resource
import signal
from multiprocessing.connection import Connection

import msgspec

from dowse.ingest.readers.registry import find_readers
from dowse.ingest.reading.limits import rare_collections
from dowse.ingest.reading.read_file import FileReader, ReadResult, Task

OUT_OF_MEMORY = "skipped: reading needs more memory than a worker has"


def main(handle: int, memory_bytes: int) -> None:
    """Serve tasks. A bug in a reader ends the worker; the pool finds the traceback in its output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles ctrl-C
    reader = FileReader(find_readers())
    _, most = resource.getrlimit(resource.RLIMIT_AS)  # a limit that is already set stays
    bound = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
    decoder = msgspec.msgpack.Decoder(Task)
    with Connection(handle) as pool, rare_collections():
        pool.send_bytes(b"")
        while True:
            try:
                message = pool.recv_bytes()
            except EOFError:
                return
            try:
                result = reader.read(decoder.decode(message))
            except MemoryError:
                result = ReadResult(problem=OUT_OF_MEMORY)
            pool.send_bytes(msgspec.msgpack.encode(result))
            if result.problem == OUT_OF_MEMORY:
                return  # this process may be in a bad state
