"""Tables of docs/benchmarks.md, written from benchmark results.

A table stands between `<!-- NAME -->` and `<!-- end -->`; `python -m bench.report` writes them and the plots
anew. The words around them stay: they are written by hand, and to be read again when figures move.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from bench import cache, plot
from bench.figures import short

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FILTERS = ("none", "10 %", "0.5 %")
MILLION = 1_000_000


def main() -> None:
    plot.main()
    runs = {each["chunks"]: each for each in plot.runs()}
    largest = plot.beside_peers(runs.values())
    if largest is None:
        raise SystemExit("no run has measured peers; run `python -m bench.engine --chunks 100000` first")
    tables = {
        "machine": _machine(largest),
        "bars": _bars(largest),
        "bars at a million": _bars(runs[MILLION], ("hybrid", "RSS")) if MILLION in runs else "not measured",
        "growth": _growth(runs),
        "peers": _peers(largest),
        "stages": _stages(largest),
    }
    quality = cache.folder("results") / "quality.json"
    if quality.exists():
        tables["quality"] = _quality(json.loads(quality.read_text("utf-8")))
    PAGE.write_text(filled(PAGE.read_text("utf-8"), tables), "utf-8")


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Replace the tables of the page; a table without its markers is an error."""
    for name, table in tables.items():
        pattern = re.compile(rf"<!-- {name} -->\n.*?<!-- end -->", re.DOTALL)
        if not pattern.search(page):
            raise SystemExit(
                f"docs/benchmarks.md has no place for the table {name!r}; write <!-- {name} --> and <!-- end -->"
            )
        before, after = pattern.split(page)[0], pattern.split(page)[-1]
        page = f"{before}<!-- {name} -->\n{table}\n<!-- end -->{after}"
    return page


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _machine(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    versions = {name: value for each in run["versions"].values() for name, value in each.items()}
    named = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; load while "
        f"measuring {machine['load']}.\n\n{named}."
    )


def _bars(run: Mapping[str, Any], about: tuple[str, ...] = ("",)) -> str:
    """Make a table of the figures whose names begin with `about`."""
    rows = []
    for each in run["figures"]:
        if each["bar"] is not None and each["name"].startswith(about):
            sign = "≤" if each["at_most"] else "≥"
            limits = (f"{sign} {short(each['bar'])}", f"{sign} {short(each['goal'])}")
            rows.append((each["name"], f"{short(each['value'])} {each['unit']}".strip(), *limits, each["verdict"]))
    return _table(("what", f"at {run['chunks']:,} chunks", "bar", "goal", ""), rows)


def _growth(runs: Mapping[int, Mapping[str, Any]]) -> str:
    sizes = sorted(runs)
    names = dict.fromkeys(each["name"] for size in sizes for each in runs[size]["figures"] if "/" not in each["name"])
    rows = []
    for name in names:
        found = {size: next((e for e in runs[size]["figures"] if e["name"] == name), None) for size in sizes}
        if sum(each is not None for each in found.values()) > 1:
            unit = next(each["unit"] for each in found.values() if each is not None)
            rows.append((name, unit, *("" if each is None else short(each["value"]) for each in found.values())))
    return _table(("what", "unit", *(f"{size:,}" for size in sizes)), rows)


def _peers(run: Mapping[str, Any]) -> str:
    rows = []
    details = run["details"]
    for key in dict.fromkeys(tuple(key.split(" | ")[:2]) for key in details["times"]):
        times = [details["times"].get(" | ".join((*key, chosen))) for chosen in FILTERS]
        cells = ["" if each is None else _cell(each) for each in times]
        rows.append((*key, *cells, short(details["rss_mb"][key[0]])))
    return _table(("engine", "leg", "no filter, p50 / p99 CPU ms (hits)", "10 %", "0.5 %", "RSS MB"), rows)


def _cell(times: Mapping[str, float]) -> str:
    hits = f" ({times['hits']:.0f})" if "hits" in times else ""
    return f"{short(times['cpu_p50'])} / {short(times['cpu_p99'])}{hits}"


def _stages(run: Mapping[str, Any]) -> str:
    stages = run["details"]["stages_ms"]
    return _table(tuple(stages), [tuple(short(value) for value in stages.values())])


def _quality(results: Mapping[str, Any]) -> str:
    outcomes = results["outcomes"]
    sets = {each["dataset"]: each["questions"] for each in outcomes}
    against = {(each["engine"], each["setting"]): each for each in results.get("against", ())}
    rows = []
    for key in dict.fromkeys((each["engine"], each["setting"]) for each in outcomes):
        own = [each for each in outcomes if (each["engine"], each["setting"]) == key]
        scores = {each["dataset"]: each["ndcg@10"] for each in own}
        if set(scores) != set(sets):  # an interrupted run: a mean over fewer collections cannot be compared
            continue
        average = mean(scores.values())
        cells = [f"{scores[name]:.3f}" for name in sets]
        rows.append((average, (*key, f"**{average:.4f}**", _minus(against.get(key)), *cells, *map(short, _costs(own)))))
    named = (f"{name} ({count})" for name, count in sets.items())
    head = (
        "engine",
        "setting",
        "mean",
        "Dowse minus it",
        *named,
        "index CPU s",
        "p50 ms",
        "p99 ms",
        "RSS MB",
        "import s",
    )
    versions = {name: value for each in results["versions"].values() for name, value in each.items()}
    told = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    return _table(head, [row for _, row in sorted(rows, key=lambda row: -row[0])]) + f"\n\n{told}."


def _costs(own: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    return (
        sum(each["index_cpu_s"] for each in own),
        mean(each["query_cpu_p50_ms"] for each in own),
        max(each["query_cpu_p99_ms"] for each in own),
        max(each["rss_mb"] for each in own),
        mean(each["import_cpu_s"] for each in own),
    )


def _minus(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else f"{found['mean']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]"


if __name__ == "__main__":
    main()
