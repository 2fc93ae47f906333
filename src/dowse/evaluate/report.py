"""An ablation and its failures go in; one page of HTML comes out that needs nothing else and explains itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from dowse.evaluate import report_charts as charts
from dowse.evaluate import report_tables as tables
from dowse.evaluate.ablate import Row
from dowse.evaluate.bootstrap import interval
from dowse.evaluate.failures import Failure
from dowse.evaluate.metrics import MAIN
from dowse.evaluate.run import Run

_POINTS = 20  # of a risk–coverage curve
_CURVES = 6  # more than these are drawn as one
_SUMMARY = 160  # characters of a failure's first line; the rest is shown when it is opened


def page(rows: Sequence[Row], failures: Sequence[Failure]) -> str:
    """The first row is what is judged; rows two to four are its legs alone."""
    style = files("dowse.evaluate").joinpath("report.css").read_text("utf-8")
    body = "\n".join(
        part for section in (_head, _quality, _parts, _scatter, _coverage, _cost) for part in section(rows)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Search quality</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style></head>\n<body><main>\n{body}\n{_failures(failures)}\n</main></body></html>\n"
    )


def _head(rows: Sequence[Row]) -> Iterator[str]:
    judged = rows[0]
    asked = sum(len(run.answered) for run in judged.runs)
    best = max(rows[1:4], key=lambda row: row.mean)
    sets = len(judged.runs)
    yield "<h1>How good is the search?</h1>"
    yield (
        f"<p class=lead>{asked:,} questions with known answers were put to {_counted(sets, 'collection')}. "
        f"The search as it is set scores <b>{judged.mean:.3f}</b>; its best single part, {escape(best.setting.name)},"
        f" scores {best.mean:.3f}.</p>"
    )
    yield (
        "<p>The score is nDCG@10: 1 means that the first ten hits are the best there could be, in the best order; 0 "
        "means that none of them is right. A right hit in the tenth place counts less than a third of one in the "
        "first. Whiskers and brackets are 95 % intervals: questions were drawn anew 2,000 times, and the score was in "
        "there 95 times of 100. Two settings are compared question by question.</p>"
    )


def _quality(rows: Sequence[Row]) -> Iterator[str]:
    compared = [rows[0], *rows[1:4], *(row for row in rows if row.setting.name.startswith("rrf 60, three"))]
    yield "<h2>Each collection</h2>"
    yield _legend([row.setting.name for row in compared])
    groups = []
    for number, run in enumerate(rows[0].runs):
        groups.append((run.dataset, [_bar(row.runs[number], colour) for colour, row in enumerate(compared)]))
    yield charts.bars(groups, "nDCG@10 by collection")
    yield _table(tables.runs_cells(rows[0].runs))


def _parts(rows: Sequence[Row]) -> Iterator[str]:
    yield "<h2>What each part adds</h2>"
    yield (
        "<p>The first line is the search as it is set. In the others a part is taken away or replaced; the difference "
        "is theirs minus the first, over all collections alike. “Can be chance” means that 0 lies in the interval.</p>"
    )
    yield _table(tables.ablation_cells(rows))


def _scatter(rows: Sequence[Row]) -> Iterator[str]:
    best = max(rows[1:4], key=lambda row: row.mean)
    pairs = [
        (theirs.metrics[MAIN], ours.metrics[MAIN])
        for our_run, their_run in zip(rows[0].runs, best.runs, strict=True)
        for ours, theirs in zip(our_run.answered, their_run.answered, strict=True)
    ]
    better, worse = sum(y > x for x, y in pairs), sum(y < x for x, y in pairs)
    yield "<h2>Question by question</h2>"
    yield (
        f"<p>Against {escape(best.setting.name)} alone: {better:,} questions are answered better, {worse:,} worse and "
        f"{len(pairs) - better - worse:,} the same. A bubble's area is the number of questions.</p>"
    )
    yield charts.bubbles(pairs, f"{best.setting.name} alone", "as it is set")


def _coverage(rows: Sequence[Row]) -> Iterator[str]:
    runs = rows[0].runs
    yield "<h2>If doubtful answers were withheld</h2>"
    yield (
        "<p>Questions are sorted by the confidence of their answer. To the left only the surest are answered; at the "
        "right end all are. A curve that falls says that confidence tells good answers from bad ones; a flat one says "
        "that it does not.</p>"
    )
    curves = [charts.Line(run.dataset, _risk(run)) for run in runs]
    if len(curves) > _CURVES:
        everything = Run("all", "", "", tuple(each for run in runs for each in run.answered))
        curves = [charts.Line("all questions", _risk(everything))]
    yield charts.lines(curves, "share of the questions that is answered", "nDCG@10 of those")


def _cost(rows: Sequence[Row]) -> Iterator[str]:
    yield "<h2>What quality costs</h2>"
    yield (
        "<p>CPU milliseconds a question, embedding it included, on the machine that made this page. What changes no "
        "answer is left out.</p>"
    )
    drawn = [row for row in rows if row.against is None or not row.against.nothing]
    marks = [
        charts.Mark(row.setting.name, row.cpu_ms_per_query, row.mean, 0 if number == 0 else 1)
        for number, row in enumerate(drawn)
    ]
    yield charts.labelled(marks, "CPU ms a question", "nDCG@10, mean of the collections")


def _failures(failures: Sequence[Failure]) -> str:
    if not failures:
        return ""
    parts = [
        "<h2>Where it loses most</h2>",
        "<p>Questions that a part alone answers better than the whole, and what every step gave the right document "
        "and the wrong one that took its place.</p>",
    ]
    for failure in failures:
        head, *lines = tables.failure_lines(failure)
        body = escape("\n".join(lines))
        whole = f"<p>{escape(failure.question.text)}</p>" if len(head) > _SUMMARY else ""
        short = f"{head[:_SUMMARY]}…" if whole else head
        parts.append(f"<details><summary>{escape(short)}</summary>{whole}<pre>{body}</pre></details>")
    return "\n".join(parts)


def _bar(run: Run, colour: int) -> charts.Bar:
    found = interval([run.figures()])
    return charts.Bar(f"{run.dataset}, {run.setting}", found.mean, found.low, found.high, colour)


def _risk(run: Run) -> tuple[tuple[float, float], ...]:
    """(share answered, mean of those), surest first; equal confidence in the dataset's order."""
    order = sorted(range(len(run.answered)), key=lambda number: -run.answered[number].confidence)
    figures = [run.answered[number].metrics[MAIN] for number in order]
    sizes = sorted({max(round(len(figures) * step / _POINTS), 1) for step in range(1, _POINTS + 1)})
    return tuple((size / len(figures), sum(figures[:size]) / size) for size in sizes)


def _legend(names: Sequence[str]) -> str:
    items = (f'<span><i style="background:var(--c{n})"></i>{escape(name)}</span>' for n, name in enumerate(names))
    return f'<p class="legend">{"".join(items)}</p>'


def _table(cells: tables.Cells) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in cells[0])
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells[1:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
