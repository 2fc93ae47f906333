"""Measurements of the campaign that no test of the suite makes: each returns a figure and whether it is at its goal."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import dowse
from bench.reliability import damage as faults
from bench.reliability.power_loss import crashes

Found = tuple[str, bool | None]  # figure; at its goal, None: not run
_OLDER = (  # the tables of schema 2, which an upgrade replaces
    "DROP TABLE embedded",
    "CREATE UNIQUE INDEX embeddings_by_hash ON embeddings (model, content_hash)",
    "DELETE FROM meta WHERE key = 'embedded'",
    "UPDATE meta SET value = '2' WHERE key = 'schema_version'",
)


def damage(folder: Path, *, long: bool) -> Found:
    tally = faults.run(folder, 1000 if long else 120)
    for line in tally.bad:
        print(f"    {line}")
    figure = ", ".join(f"{count} {name}" for name, count in sorted(tally.outcomes.items()))
    return f"{tally.faults} faults: {figure}", not tally.bad


def fsyncs(folder: Path, *, long: bool) -> Found:
    if not shutil.which("strace"):
        return "strace is not installed", None
    batches = 40 if long else 8
    script = (
        "import sys, dowse\n"
        "with dowse.open(sys.argv[1], embedder='hash') as engine:\n"
        f"    for n in range({batches}):\n"
        "        engine.add([{'id': f'{n}', 'text': f'word{n}'}])\n"
    )
    log = folder / "calls"
    command = ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    subprocess.run([*command, sys.executable, "-c", script, str(folder / "index")], check=True)
    lines = log.read_text("utf-8", "replace").splitlines()
    own = sum("-wal>" in line for line in lines)
    return f"{len(lines) / batches:.1f} a batch, {own / batches:.1f} of them on the log", own >= batches


def power_loss(folder: Path, *, long: bool) -> Found:
    if not shutil.which("strace"):
        return "strace is not installed", None
    found = list(crashes(folder, 300 if long else 30, 12 if long else 6))
    for _, wrong in found:
        if wrong:
            print(f"    {wrong}")
    acked, wrong = sum(count for count, _ in found), sum(bool(each) for _, each in found)
    return f"{wrong} wrong of {len(found)} crash points, {acked} acknowledged batches looked for", not wrong


def clock(folder: Path, *, long: bool) -> Found:
    """Index at wrong dates. The library of faketime is not needed: the files and the stored times get them."""
    lost = 0
    for number, days in enumerate((0, -400, 400, 0)):
        path = folder / "source" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"word{number} of a day\n", "utf-8")
        moment = time.time() + days * 86400
        os.utime(path, (moment, moment))
        with dowse.open(folder / "index", embedder="hash") as engine:
            engine.index([folder / "source"])
            lost += sum(not engine.query(f"word{each}").chunks for each in range(number + 1))
    return f"{lost} of 10 look-ups failed (times of files; the system's clock was not changed)", lost == 0


def upgrade_kills(folder: Path, *, long: bool) -> Found:
    """Kill processes that upgrade an index of schema 2, then open it."""
    whole, copy, kills, wrong = folder / "whole", folder / "copy", 60 if long else 6, 0
    with dowse.open(whole, embedder="hash") as engine:
        engine.add([{"id": f"{number}", "text": f"word{number} common"} for number in range(200)])
    with closing(sqlite3.connect(whole / "dowse.db", isolation_level=None)) as connection:
        for statement in _OLDER:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    draw, done = random.Random(3), 0
    script = (
        "import sys, pathlib, dowse.store.embedded as e; print(flush=True); e.EmbeddedStore(pathlib.Path(sys.argv[1]))"
    )
    for _ in range(kills):
        shutil.copytree(whole, copy)
        child = subprocess.Popen([sys.executable, "-c", script, str(copy)], stdout=subprocess.PIPE)
        with child:
            if child.stdout:
                child.stdout.readline()
            time.sleep(draw.random() * 0.03)
            done += child.poll() is not None
            child.kill()
        with dowse.open(copy, embedder="hash") as engine:
            status = engine.reader().stats
            bad = [check for check in engine.verify(deep=True) if check.state != "ok"]
            wrong += bool(bad) or (status.documents, status.vectors) != (200, 200)
        shutil.rmtree(copy)
    return f"{wrong} wrong in {kills} kills ({done} came too late)", wrong == 0


def soak(folder: Path, *, long: bool) -> Found:
    """Run the long form of `bench.serve`, which prints the growth of memory."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.serve", "--quick", "--long", "--words"], capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if "10,000" in line or "MB" in line]
    return json.dumps(lines[-1:] or done.stderr[-200:]), done.returncode == 0 and not any(
        "fail" in each for each in lines
    )


MEASURES: dict[str, Callable[..., Found]] = {
    "damage": damage,
    "fsyncs": fsyncs,
    "power_loss": power_loss,
    "clock": clock,
    "upgrade_kills": upgrade_kills,
    "soak": soak,
}
