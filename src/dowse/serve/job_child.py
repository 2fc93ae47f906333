"""One index run in a process of its own: what to read enters on stdin, progress and the report leave on stdout as lines
of JSON.

Apart from the server, so that reading files takes no time from the questions that it answers meanwhile.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import msgspec

import dowse
from dowse.config import Config
from dowse.errors import DowseError
from dowse.ports import Progress, Reporter
from dowse.serve.wire import result as wire

EVERY_S = 0.1  # at most so often is progress told; chosen


class Order(msgspec.Struct, frozen=True):
    """What is to be done."""

    index: str
    paths: tuple[str, ...]
    embed: bool = True


def main() -> None:
    # What a library prints must not stand between our lines.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    config = Config.load(Path.cwd(), os.environ)
    try:
        with dowse.open(order.index, create=False, config=config, embedder=config.embedder) as engine:
            report = engine.index(order.paths, embed=order.embed, wait=True, report=_teller(channel))
        _tell(channel, {"report": wire.report_object(report)})
    except DowseError as error:
        _tell(channel, wire.error_object(error))


def _teller(channel: BinaryIO) -> Reporter:
    told_s = 0.0
    phase = ""

    def tell(progress: Progress) -> None:
        nonlocal told_s, phase
        if monotonic() - told_s < EVERY_S and progress.phase == phase and progress.done != progress.total:
            return
        told_s, phase = monotonic(), progress.phase
        _tell(channel, {"progress": wire.plain(progress)})

    return tell


def _tell(channel: BinaryIO, row: wire.Object) -> None:
    channel.write(wire.encode(row) + b"\n")
    channel.flush()


if __name__ == "__main__":
    main()
