"""Figures of a benchmark: printed lines with bar and goal, and a JSON file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

Bars = tuple[float | None, float | None]
"""Bar and goal; None where there is none at this size."""

NO_BARS: Bars = (None, None)


@dataclass(frozen=True)
class Figure:
    """Measured value; without a bar it is only shown."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    goal: float | None = None
    at_most: bool = False  # the bar is an upper limit

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return "-"
        return "pass" if (self.value <= self.bar if self.at_most else self.value >= self.bar) else "fail"

    @property
    def line(self) -> str:
        """name  figure  bar  goal  pass|fail"""
        sign = "≤" if self.at_most else "≥"
        limits = [f"{sign} {short(each)}" if each is not None else "-" for each in (self.bar, self.goal)]
        return f"{self.name:58} {short(self.value):>9} {self.unit:9} {limits[0]:>9} {limits[1]:>9}  {self.verdict}"


def short(value: float) -> str:
    """Format with three significant digits and separated thousands."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.995 or value == 0 else f"{value:.3f}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(ceil(len(ordered) * share) - 1, 0)]


def machine() -> dict[str, str]:
    """Describe the machine of the figures."""
    model = platform.processor()
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "system": platform.system() + " " + platform.release().split("-")[0],
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def save(file: Path, chunks: int, figures: Iterable[Figure], details: object, versions: object) -> None:
    found = [asdict(each) | {"verdict": each.verdict} for each in figures]
    whole = {"chunks": chunks, "machine": machine(), "versions": versions, "figures": found, "details": details}
    file.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
