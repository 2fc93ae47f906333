"""Nothing goes in; the folder outside the repository where the benchmarks keep what they made comes out."""

from __future__ import annotations

import os
from pathlib import Path

from dowse.config import user_folder

VARIABLE = "DOWSE_BENCH_CACHE"  # another place for it; some 10 GB at a million chunks


def folder(*parts: str) -> Path:
    """A folder in the cache, made if need be."""
    chosen = os.environ.get(VARIABLE)
    found = (Path(chosen) if chosen else user_folder("cache") / "bench").joinpath(*parts)
    found.mkdir(parents=True, exist_ok=True)
    return found


def size_bytes(place: Path) -> int:
    """Of all files below a folder; room at their ends that nothing was written to takes none."""
    found = (file.stat() for file in place.rglob("*") if file.is_file())
    return sum(min(each.st_size, 512 * each.st_blocks) for each in found)
