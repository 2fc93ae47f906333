"""Cache folder of the benchmarks, outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

from dowse.config import user_folder

VARIABLE = "DOWSE_BENCH_CACHE"  # sets another folder; it takes some 10 GB at a million chunks


def folder(*parts: str) -> Path:
    """Return a folder of the cache; create it if needed."""
    chosen = os.environ.get(VARIABLE)
    found = (Path(chosen) if chosen else user_folder("cache") / "bench").joinpath(*parts)
    found.mkdir(parents=True, exist_ok=True)
    return found


def size_bytes(place: Path) -> int:
    """Sum the sizes of the files below a folder, without unwritten space at their ends."""
    found = (file.stat() for file in place.rglob("*") if file.is_file())
    return sum(min(each.st_size, 512 * each.st_blocks) for each in found)
