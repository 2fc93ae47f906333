"""Report of an ablation and its failures: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from dowse.evaluate import report_charts as charts
from dowse.evaluate import report_tables as tables
from dowse.evaluate.ablate import AblationRow
from dowse.evaluate.failures import Failure
from dowse.evaluate.metrics import MAIN, interval
from dowse.evaluate.run import EvalRun, ScoredQuery

_POINTS = 20  # of a risk–coverage curve
_CURVES = 6  # with more collections one curve shows all queries
_SUMMARY = 160  # characters of the first line of a failure; opening it shows the rest


def page(rows: Sequence[AblationRow], failures: Sequence[Failure]) -> str:
    """Make the page. The first row is the judged setting; rows two to four are its legs alone."""
    style = files("dowse.evaluate").joinpath("report.css").read_text("utf-8")
    body = "\n".join(
        part for section in (_head, _quality, _parts, _scatter, _coverage, _cost) for part in section(rows)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Search quality</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style></head>\n<body><main>\n{body}\n{_failures(failures)}\n</main></body></html>\n"
    )


def _head(rows: Sequence[AblationRow]) -> Iterator[str]:
    judged = rows[0]
    asked = sum(len(run.answered) for run in judged.runs)
    best = max(rows[1:4], key=lambda row: row.mean)
    sets = len(judged.runs)
    yield "<h1>Search quality</h1>"
    yield (
        f"<p class=lead>{asked:,} judged queries in {sets} collection{'s' * (sets > 1)}. "
        f"The current settings score <b>{judged.mean:.3f}</b>; the best single leg, {escape(best.setting.name)},"
        f" scores {best.mean:.3f}.</p>"
    )
    yield (
        "<p>The score is nDCG@10: 1 means that the first ten results are the best possible, in the best order; 0 means "
        "that none of them is relevant. A relevant result in tenth place counts less than a third of one in first "
        "place. Whiskers and brackets are 95 % bootstrap intervals (2,000 draws). Settings are compared query by "
        "query.</p>"
    )


def _quality(rows: Sequence[AblationRow]) -> Iterator[str]:
    compared = [rows[0], *rows[1:4], *(row for row in rows if row.setting.name.startswith("rrf 60, three"))]
    yield "<h2>Scores by collection</h2>"
    items = (
        f'<span><i style="background:var(--c{number})"></i>{escape(row.setting.name)}</span>'
        for number, row in enumerate(compared)
    )
    yield f'<p class="legend">{"".join(items)}</p>'
    groups = []
    for number, run in enumerate(rows[0].runs):
        groups.append((run.dataset, [_bar(row.runs[number], colour) for colour, row in enumerate(compared)]))
    yield charts.bars(groups, "nDCG@10 by collection")
    yield _table(tables.runs_cells(rows[0].runs))


def _parts(rows: Sequence[AblationRow]) -> Iterator[str]:
    yield "<h2>Ablation</h2>"
    yield (
        "<p>The first row shows the current settings. The other rows remove or replace one part; the difference is "
        "their score minus the first, averaged over the collections. “Not significant” means that 0 is in the interval."
        "</p>"
    )
    yield _table(tables.ablation_cells(rows))


def _scatter(rows: Sequence[AblationRow]) -> Iterator[str]:
    best = max(rows[1:4], key=lambda row: row.mean)
    pairs = [
        (theirs.metrics[MAIN], ours.metrics[MAIN])
        for our_run, their_run in zip(rows[0].runs, best.runs, strict=True)
        for ours, theirs in zip(our_run.answered, their_run.answered, strict=True)
    ]
    better, worse = sum(y > x for x, y in pairs), sum(y < x for x, y in pairs)
    yield "<h2>Query by query</h2>"
    yield (
        f"<p>Compared with {escape(best.setting.name)} alone, {better:,} queries score higher, {worse:,} lower and "
        f"{len(pairs) - better - worse:,} the same. The area of a bubble is the number of queries.</p>"
    )
    yield charts.bubbles(pairs, f"{best.setting.name} alone", "current settings")


def _coverage(rows: Sequence[AblationRow]) -> Iterator[str]:
    runs = rows[0].runs
    yield "<h2>Confidence</h2>"
    yield (
        "<p>The queries are sorted by the confidence of their result. The left end shows only the most confident, the "
        "right end all of them. A falling curve means that confidence separates good results from bad ones; a flat one "
        "means that it does not.</p>"
    )
    curves = {run.dataset: _risk(run.answered) for run in runs}
    if len(curves) > _CURVES:
        curves = {"all queries": _risk([each for run in runs for each in run.answered])}
    yield charts.lines(curves, "share of the queries", "nDCG@10 of those")


def _cost(rows: Sequence[AblationRow]) -> Iterator[str]:
    yield "<h2>CPU time</h2>"
    yield (
        "<p>CPU milliseconds per query, including its embedding, on the machine that made this page. Settings that "
        "change no result are not shown.</p>"
    )
    drawn = [row for row in rows if row.against is None or not row.against.nothing]
    marks = [
        charts.LabelledPoint(row.setting.name, row.cpu_ms_per_query, row.mean, 0 if number == 0 else 1)
        for number, row in enumerate(drawn)
    ]
    yield charts.labelled(marks, "CPU ms per query", "nDCG@10, mean of the collections")


def _failures(failures: Sequence[Failure]) -> str:
    if not failures:
        return ""
    parts = [
        "<h2>Largest losses</h2>",
        "<p>Queries where one leg alone scores higher than the current settings, with the scores of every stage for "
        "the relevant document and for the first result.</p>",
    ]
    for failure in failures:
        head, *lines = tables.failure_lines(failure)
        body = escape("\n".join(lines))
        whole = f"<p>{escape(failure.question.text)}</p>" if len(head) > _SUMMARY else ""
        short = f"{head[:_SUMMARY]}…" if whole else head
        parts.append(f"<details><summary>{escape(short)}</summary>{whole}<pre>{body}</pre></details>")
    return "\n".join(parts)


def _bar(run: EvalRun, colour: int) -> charts.Bar:
    found = interval([run.figures()])
    return charts.Bar(f"{run.dataset}, {run.setting}", found.mean, found.low, found.high, colour)


def _risk(answered: Sequence[ScoredQuery]) -> charts.Points:
    """Compute (share, mean score of that share), most confident first; ties in the order of the dataset."""
    figures = [each.metrics[MAIN] for each in sorted(answered, key=lambda each: -each.confidence)]
    sizes = sorted({max(round(len(figures) * step / _POINTS), 1) for step in range(1, _POINTS + 1)})
    return [(size / len(figures), sum(figures[:size]) / size) for size in sizes]


def _table(cells: tables.Cells) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in cells[0])
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells[1:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
