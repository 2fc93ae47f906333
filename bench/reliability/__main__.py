"""Campaign against Dowse: one line per row with its figure and goal.

    python -m bench.reliability                some minutes; .ci/run does this
    python -m bench.reliability --long         400 kills, 1,000 faults, 24,000 random steps, the soak; hours
    python -m bench.reliability --rows 8,30    some rows

docs/reliability.md has the promises behind the rows. Rows of the suite are run by pytest; a row counts as reached if
all of its tests pass and none is skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from bench.reliability.measures import MEASURES, Found
from bench.reliability.rows import ROWS, Row

_ROOT = Path(__file__).parents[2]
_MEMORY = Path("/dev/shm")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.reliability", description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="run the long forms and the slow rows")
    parser.add_argument("--rows", default="", help="numbers, joined by commas")
    parser.add_argument("--own", action="store_true", help="only rows that the test suite does not have")
    options = parser.parse_args()
    wanted = {int(each) for each in options.rows.split(",") if each}
    failed = 0
    print(f"{'row':>3}  {'test':44} {'goal':32} {'s':>5}  {'verdict':8} figure")
    for row in ROWS:
        if (wanted and row.number not in wanted) or (options.own and not row.measure):
            continue
        started_s = time.monotonic()
        figure, fine = run(row, long=options.long, chosen=row.number in wanted)
        verdict = "-" if fine is None else "pass" if fine else "fail"
        failed += verdict == "fail"
        seconds = time.monotonic() - started_s
        print(f"{row.number:3}  {row.title:44} {row.goal:32} {seconds:5.0f}  {verdict:8} {figure}", flush=True)
    return 1 if failed else 0


def run(row: Row, *, long: bool, chosen: bool) -> Found:
    """Run one row; return its figure and whether it is at its goal."""
    if row.slow and not long and not chosen:
        return "only with --long", None
    if row.measure:
        with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
            return MEASURES[row.measure](Path(folder), long=long)
    if not row.tests:
        return f"not covered: {row.missing}", None
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_nodes(row)]
    env = os.environ | (dict(row.long) if long else {})
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, env=env)
    said = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", done.stdout)
    figure = ", ".join(said) or done.stdout.strip().rsplit("\n", 1)[-1]
    note = f"; not covered: {row.missing}" if row.missing else ""
    return figure + note, done.returncode == 0


def _nodes(row: Row) -> list[str]:
    """Return the tests of a row for pytest, with patterns of names spelled out."""
    found = []
    for each in row.tests:
        file, _, name = each.partition("::")
        if "*" in name:
            known = re.findall(r"^(?:async )?def (test_\w+)", (_ROOT / file).read_text("utf-8"), re.MULTILINE)
            found += [f"{file}::{test}" for test in known if fnmatch(test, name)]
        else:
            found.append(each)
    return found


if __name__ == "__main__":
    sys.exit(main())
