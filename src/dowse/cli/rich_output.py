"""Terminal output with rich: results enter, coloured, linked and grouped text leaves; progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

from rich import progress as bars
from rich.console import Console
from rich.text import Text

from dowse.serve.best_line import MarkedLine, Marker
from dowse.serve.plain_text import ChunkLocator, clean_line, explain_lines, forced, wants_colour
from dowse.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dowse import ports
    from dowse.cli.find.search import SearchOutput
    from dowse.types import QueryResult, ScoredChunk

NOTE_COLUMNS = 30  # chosen: leaves room for the bar on a terminal of 80
PHASES = {"read": "Reading files", "link": "Linking", "embed": "Embedding", "pull": "Downloading the model"}


def console(env: Mapping[str, str], *, refused: bool) -> Console:
    """Open a console on stdout that colours by our rules and does not wrap."""
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


def print_result(out: Console, result: QueryResult, places: ChunkLocator, output: SearchOutput) -> None:
    """Print results grouped by file, files in the order of their best result, each with its rank."""
    marker = Marker(result.query, Tokenizer())
    shown = [each.chunks for each in result.groups] or [(chunk,) for chunk in result.chunks]
    ranked = [(rank, chunk, places.of(chunk)) for rank, chunks in enumerate(shown, start=1) for chunk in chunks]
    best: dict[str, int] = {}
    for rank, _, place in ranked:
        best.setdefault(place.path, rank)
    ranked.sort(key=lambda row: (best[row[2].path], row[0]))
    for path, group in groupby(ranked, key=lambda row: row[2].path):
        rows = list(group)
        if best[path] > 1:
            out.print()
        first = rows[0][2]
        out.print(Text(first.name, "bold magenta" + (f" link {first.file.as_uri()}" if first.file else "")))
        for rank, chunk, _ in rows:
            _print_hit(out, rank, chunk, marker, output)
    if not result.chunks:
        out.print("no results", style="dim")


def _print_hit(out: Console, rank: int, chunk: ScoredChunk, marker: Marker, output: SearchOutput) -> None:
    page = f"page {chunk.page}" if chunk.page else ""
    lines = f"{chunk.start_line}-{chunk.end_line}" if chunk.start_line else page
    about = chunk.qualified_name or chunk.symbol_name or chunk.section_path or chunk.document_title
    head = Text().append(f" {rank:>2} ", "bold")
    head.append(f"{chunk.confidence or 0.0:>4.0%}  ", "cyan")
    head.append(f"{lines}  {clean_line(about)}".rstrip())
    head.append(f"  {chunk.corpus_type}  {chunk.id}", "dim")
    if chunk.stale:
        head.append("  changed since indexing", "yellow")
    out.print(head)
    for line in marker.snippet(chunk.text, chunk.start_line, chunk.symbol_name, output.context_lines):
        out.print(_marked(line))
    if output.explain:
        for row in explain_lines(chunk):
            out.print(Text(f"      {row}", "dim"))


def _marked(line: MarkedLine) -> Text:
    number = "" if line.number is None else str(line.number)
    body = Text(line.text)
    for start, stop in line.marks:
        body.stylize("bold red", start, stop)
    return Text().append(f"{number:>6}  ", "green").append_text(body)


class _Rate(bars.ProgressColumn):
    """Column with the items a second, once known."""

    def render(self, task: bars.Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", "cyan")


@contextmanager
def progress(*, wanted: bool) -> Iterator[Callable[[ports.Progress], None] | None]:
    """Show a bar for each phase on stderr; yield None when stderr is not a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    shown = bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        _Rate(),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[note]}", style="dim"),
        console=Console(file=sys.stderr),
        transient=True,
    )
    tasks: dict[str, bars.TaskID] = {}

    def report(step: ports.Progress) -> None:
        if step.phase not in tasks:
            tasks[step.phase] = shown.add_task(PHASES.get(step.phase, step.phase), total=step.total, note="")
        shown.update(
            tasks[step.phase], completed=step.done, total=step.total, note=clean_line(step.note)[-NOTE_COLUMNS:]
        )

    with shown:
        yield report
