"""Plots of benchmark results as SVG files under docs/img.

Drawn by hand, with the standard library alone: a few lines and bars need no plotting package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bench import cache

OUT = Path(__file__).parents[1] / "docs" / "img"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 70, 150, 40, 45
COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6d597a", "#2e4057", "#8d96a3", "#00798c", "#b56576")
FILTERS = ("none", "10 %", "0.5 %")
OWN = ("dowse", "dowse numpy")  # with and without the compiled kernel
LETTER, ROW = 6.2, 12  # about a letter's width and a line's height, at the size of names

Points = Sequence[tuple[float, float]]


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    found = {each["chunks"]: each for each in runs()}
    if not found:
        raise SystemExit("no results; run `python -m bench.engine --quick` first")
    plots = {
        "latency-chunks.svg": lines("Hybrid query, CPU ms against chunks", "chunks", "CPU ms", _latency(found)),
        "memory-chunks.svg": lines("Memory and disk, MB against chunks", "chunks", "MB", _memory(found)),
        "build-chunks.svg": lines("Building words, CPU s against chunks", "chunks", "CPU s", _build(found)),
    }
    largest = beside_peers(found.values())
    if largest is not None:
        size = f"{largest['chunks']:,} chunks"
        plots["selectivity.svg"] = bars(
            f"Hybrid query by filter, {size}, CPU ms, logarithmic", _by_filter(largest, "hybrid")
        )
        plots["peers-words.svg"] = bars(f"One BM25 leg, {size}, CPU ms, logarithmic", _by_filter(largest, "words"))
        plots["peers-dense.svg"] = bars(f"Nearest vectors, {size}, CPU ms, logarithmic", _by_filter(largest, "dense"))
    quality = cache.folder("results") / "quality.json"
    if quality.exists():
        points = _quality(json.loads(quality.read_text("utf-8")))
        plots["quality.svg"] = scatter("nDCG@10 against CPU ms a query (p50)", "CPU ms", "nDCG@10, mean", points)
    for name, drawing in plots.items():
        (OUT / name).write_text(drawing, "utf-8")
        print(f"docs/img/{name}")


def runs() -> list[dict[str, Any]]:
    """Return the full run of each size, or its quick one without another."""
    files = sorted(cache.folder("results").glob("engine-*.json"), key=lambda file: "quick" not in file.name)
    return [json.loads(file.read_text("utf-8")) for file in files]


def beside_peers(runs: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the largest run that measured peers."""
    compared = (run for run in runs if set(run["details"]["rss_mb"]) - set(OWN))
    return max(compared, key=lambda run: int(run["chunks"]), default=None)


def _times(run: Mapping[str, Any], engine: str, leg: str, chosen: str) -> float | None:
    found = run["details"]["times"].get(f"{engine} | {leg} | {chosen}")
    return None if found is None else float(found["cpu_p50"])


def _latency(runs: Mapping[int, Mapping[str, Any]]) -> dict[str, Points]:
    found: dict[str, list[tuple[float, float]]] = {}
    for chunks, run in sorted(runs.items()):
        for engine in ("dowse", "lancedb"):
            for chosen in FILTERS:
                if (ms := _times(run, engine, "hybrid", chosen)) is not None:
                    found.setdefault(f"{engine}, {chosen}", []).append((chunks, ms))
    return dict(found)


def _memory(runs: Mapping[int, Mapping[str, Any]]) -> dict[str, Points]:
    names = {"RSS": "RSS while serving", "disk": "disk a chunk, vectors and truth included"}
    found: dict[str, list[tuple[float, float]]] = {}
    for chunks, run in sorted(runs.items()):
        for label, name in names.items():
            value = next((each["value"] for each in run["figures"] if each["name"] == name), None)
            if value is not None:
                found.setdefault(label, []).append((chunks, value if label == "RSS" else value * chunks / 1e6))
    return dict(found)


def _build(runs: Mapping[int, Mapping[str, Any]]) -> dict[str, Points]:
    found: dict[str, list[tuple[float, float]]] = {}
    for chunks, run in sorted(runs.items()):
        for engine, built in run["details"].get("build", {}).items():
            if "words_cpu_s" in built:
                found.setdefault(engine, []).append((chunks, built["words_cpu_s"]))
    return dict(found)


def _by_filter(run: Mapping[str, Any], leg: str) -> dict[str, dict[str, float]]:
    """Return CPU ms by engine and filter; the prose leg of Dowse represents words."""
    found: dict[str, dict[str, float]] = {}
    for engine in run["details"]["rss_mb"]:
        own = "bm25_nlp" if engine in OWN and leg == "words" else leg
        times = {chosen: ms for chosen in FILTERS if (ms := _times(run, engine, own, chosen)) is not None}
        if times:
            found[engine] = times
    return found


def _quality(results: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for each in results["outcomes"]:
        name = each["engine"] if each["setting"] == "default" else f"{each['engine']}, best"
        groups.setdefault(name, []).append(each)
    return {
        name: (_mean([each["query_cpu_p50_ms"] for each in own]), _mean([each["ndcg@10"] for each in own]))
        for name, own in groups.items()
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# --- drawing ----------------------------------------------------------------------------------------


def lines(title: str, across: str, up: str, series: Mapping[str, Points]) -> str:
    """Draw with two logarithmic axes: a straight line is a power of the number of chunks."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    place_x, place_y = _logarithmic(xs, LEFT, WIDTH - RIGHT), _logarithmic(ys, HEIGHT - BOTTOM, TOP)
    parts = [*_axes(title, across, up), *_ticks(xs, ys, place_x, place_y)]
    for (name, points), colour in zip(series.items(), COLOURS, strict=False):
        drawn = [(place_x(x), place_y(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in drawn]
        parts.append(_text(drawn[-1][0] + 8, drawn[-1][1] + 4, name, colour=colour))
    return _svg(parts)


def scatter(title: str, across: str, up: str, points: Mapping[str, tuple[float, float]]) -> str:
    """Draw with a logarithmic x axis and a linear y axis."""
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    low, high = min(ys) - 0.01, max(ys) + 0.01
    place_x = _logarithmic(xs, LEFT, WIDTH - RIGHT)
    parts = _axes(title, across, up)
    for value in (low, (low + high) / 2, high):
        at = HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)
        parts.append(_text(LEFT - 6, at + 4, f"{value:.2f}", anchor="end"))
    parts += [_text(place_x(value), HEIGHT - BOTTOM + 16, f"{value:g}", anchor="middle") for value in _powers(xs)]
    taken: list[tuple[float, float, float]] = []
    for (name, (x, y)), colour in zip(points.items(), COLOURS * 3, strict=False):
        at = HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - BOTTOM - TOP)
        parts.append(f'<circle cx="{place_x(x):.1f}" cy="{at:.1f}" r="4" fill="{colour}"/>')
        parts.append(_text(place_x(x) + 6, _free(taken, place_x(x) + 6, at + 4, name), name, colour=colour))
    return _svg(parts)


def _free(taken: list[tuple[float, float, float]], x: float, y: float, name: str) -> float:
    """Find the y of a name so that it covers no other, and reserve it."""
    end = x + LETTER * len(name)
    while any(
        x < others_end and others_x < end and abs(y - others_y) < ROW for others_x, others_end, others_y in taken
    ):
        y += 1
    taken.append((x, end, y))
    return y


def bars(title: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Draw a group of bars for each engine, one for each filter, with logarithmic lengths and values."""
    values = [value for group in groups.values() for value in group.values()]
    place = _logarithmic([min(values) / 2, *values], 120, WIDTH - 90)
    row, parts, at = 14, [_text(WIDTH / 2, 20, title, anchor="middle", size=14)], float(TOP)
    for engine, group in groups.items():
        parts.append(_text(112, at + row * len(group) / 2 + 4, engine, anchor="end"))
        for (name, value), colour in zip(group.items(), COLOURS, strict=False):
            width = place(value) - 120
            parts.append(f'<rect x="120" y="{at:.0f}" width="{width:.1f}" height="{row - 2}" fill="{colour}"/>')
            parts.append(_text(124 + width, at + row - 4, f"{value:.3g}  ({name})", size=10))
            at += row
        at += 8
    return _svg(parts, height=int(at) + 10)


def _axes(title: str, across: str, up: str) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    return [
        _text(WIDTH / 2, 20, title, anchor="middle", size=14),
        f'<path d="M{LEFT},{TOP} V{bottom} H{right}" fill="none" stroke="#888"/>',
        _text((LEFT + right) / 2, HEIGHT - 8, across, anchor="middle"),
        f'<g transform="rotate(-90 16 {HEIGHT // 2})">{_text(16, HEIGHT / 2, up, anchor="middle")}</g>',
    ]


def _ticks(xs: Sequence[float], ys: Sequence[float], place_x: Any, place_y: Any) -> list[str]:
    across = [_text(place_x(x), HEIGHT - BOTTOM + 16, f"{x:,.0f}", anchor="middle") for x in sorted(set(xs))]
    return across + [_text(LEFT - 6, place_y(y) + 4, f"{y:g}", anchor="end") for y in _powers(ys)]


def _powers(values: Sequence[float]) -> list[float]:
    """Choose round numbers within the values, 1-2-5."""
    low, high = min(values), max(values)
    steps = (step * 10.0**power for power in range(-3, 8) for step in (1, 2, 5))
    return [each for each in steps if low <= each <= high] or [low]


def _logarithmic(values: Sequence[float], start: float, stop: float) -> Any:
    low, high = log10(min(values)), log10(max(values))
    return lambda value: start + (stop - start) * ((log10(value) - low) / (high - low) if high > low else 0.5)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, colour: str = "#333") -> str:
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _svg(parts: Sequence[str], height: int = HEIGHT) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
