"""Child process of an index job: reads its order from stdin, writes progress and report to stdout as lines of JSON.

A separate process, so that indexing takes no time from the queries of the server.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

import msgspec

import dowse
from dowse.config import Config
from dowse.engine import WAIT_S
from dowse.errors import DowseError
from dowse.ports import Progress, Reporter
from dowse.reports import IndexReport
from dowse.serve.jobs import IndexTask
from dowse.serve.wire import result as wire

EVERY_S = 0.1  # between two progress lines; chosen
TURN_S = 2.0  # of embedding; chosen: a writer that waits gets its answer in time
PAUSE_S = 0.2  # between turns: a writer that waits looks every 0.05 s


def main() -> None:
    # Output that a library prints must not mix with our lines.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=IndexTask)
    config = Config.load(Path.cwd(), os.environ)
    try:
        with dowse.open(order.index, create=False, config=config, embedder=config.embedder) as engine:
            if order.kind == "embed":
                report = _embed(engine, _reporter(channel))
            else:
                report = engine.index(order.paths, embed=order.embed, wait=True, report=_reporter(channel))
        _write(channel, {"report": wire.report_object(report)})
    except DowseError as error:
        _write(channel, wire.error_object(error))


def _embed(engine: dowse.Engine, report: Reporter) -> IndexReport:
    """Embed the backlog in turns, between which others can write."""
    done = 0
    while True:
        turn = engine.embed(report, for_s=TURN_S, wait_s=WAIT_S)
        done += turn.embedded
        if not turn.pending:
            return IndexReport(embedded=done)
        sleep(PAUSE_S)


def _reporter(channel: BinaryIO) -> Reporter:
    written_s = 0.0
    phase = ""

    def report(progress: Progress) -> None:
        nonlocal written_s, phase
        if monotonic() - written_s < EVERY_S and progress.phase == phase and progress.done != progress.total:
            return
        written_s, phase = monotonic(), progress.phase
        _write(channel, {"progress": wire.plain(progress)})

    return report


def _write(channel: BinaryIO, row: wire.Object) -> None:
    channel.write(wire.encode(row) + b"\n")
    channel.flush()


if __name__ == "__main__":
    main()
