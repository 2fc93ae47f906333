"""Results enter; coloured, linked and grouped text leaves for a terminal, with rich."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from dowse.serve.plain_text import (
    SCORE_DIGITS,
    Line,
    Marker,
    Place,
    Places,
    clean_line,
    explain_lines,
    forced,
    wants_colour,
)
from dowse.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dowse import ports
    from dowse.types import QueryResult, ScoredChunk

NOTE_COLUMNS = 30  # chosen: leaves room for the bar on a terminal of 80
PHASES = (("read", "reading files"), ("link", "linking"), ("embed", "making vectors"), ("pull", "fetching the model"))


@dataclass(frozen=True)
class Look:
    """How hits are shown."""

    places: Places
    context_lines: int = 1
    explain: bool = False


def console(env: Mapping[str, str], *, refused: bool) -> Console:
    """A console on stdout that colours by our rules and wraps nothing."""
    terminal = sys.stdout.isatty()
    colour = wants_colour(env, refused=refused, terminal=terminal)
    return Console(
        file=sys.stdout,
        force_terminal=colour,
        no_color=not colour,
        color_system="auto" if terminal else "standard" if forced(env) else None,
        highlight=False,
        soft_wrap=True,
    )


def print_result(out: Console, result: QueryResult, look: Look) -> None:
    """Hits grouped by file, files in the order of their best hit; the number before a hit is its rank."""
    marker = Marker(result.query, Tokenizer())
    ranked = [(rank, chunk, look.places.of(chunk)) for rank, chunk in enumerate(result.chunks, start=1)]
    best: dict[str, int] = {}
    for rank, _, place in ranked:
        best.setdefault(place.path, rank)
    ranked.sort(key=lambda row: (best[row[2].path], row[0]))
    for path, group in groupby(ranked, key=lambda row: row[2].path):
        rows = list(group)
        if best[path] > 1:
            out.print()
        out.print(_heading(rows[0][2]))
        for rank, chunk, place in rows:
            _print_hit(out, rank, chunk, place, marker, look)
    if not result.chunks:
        out.print("nothing found", style="dim")


def _print_hit(out: Console, rank: int, chunk: ScoredChunk, place: Place, marker: Marker, look: Look) -> None:
    page = f"page {chunk.page}" if chunk.page else ""
    lines = f"{chunk.start_line}-{chunk.end_line}" if chunk.start_line else page
    about = chunk.qualified_name or chunk.symbol_name or chunk.section_path or chunk.document_title
    head = Text().append(f" {rank:>2} ", "bold")
    head.append(f"{chunk.final_score:.{SCORE_DIGITS}f}  ", "cyan")
    head.append(f"{lines}  {clean_line(about)}".rstrip())
    head.append(f"  {chunk.corpus_type}  {chunk.id}", "dim")
    if chunk.stale:
        head.append("  changed since it was indexed", "yellow")
    out.print(head)
    for line in marker.snippet(chunk, look.context_lines):
        out.print(_marked(line))
    if look.explain:
        for row in explain_lines(chunk):
            out.print(Text(f"      {row}", "dim"))


def _heading(place: Place) -> Text:
    link = f" link {place.file.as_uri()}" if place.file else ""
    return Text(place.name, f"bold magenta{link}")


def _marked(line: Line) -> Text:
    number = "" if line.number is None else str(line.number)
    body = Text(line.text)
    for start, stop in line.marks:
        body.stylize("bold red", start, stop)
    return Text().append(f"{number:>6}  ", "green").append_text(body)


class _Rate(ProgressColumn):
    """How many a second, once that is known."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", "cyan")


@contextmanager
def progress(*, wanted: bool) -> Iterator[Callable[[ports.Progress], None] | None]:
    """Bars on stderr, one a phase; None when nobody would see them."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
        console=Console(file=sys.stderr),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def report(step: ports.Progress) -> None:
        if step.phase not in tasks:
            name = dict(PHASES).get(step.phase, step.phase)
            tasks[step.phase] = bars.add_task(name, total=step.total, note="")
        bars.update(
            tasks[step.phase], completed=step.done, total=step.total, note=clean_line(step.note)[-NOTE_COLUMNS:]
        )

    with bars:
        yield report
