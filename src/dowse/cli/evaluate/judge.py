"""`dowse judge`: a query enters, its results are shown one by one, and the grades are stored in the index."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import add, option
from dowse.cli.query_options import QueryCommand, query_options, request_fields, request_of
from dowse.cli.session import CommandSession
from dowse.errors import BadRequestError
from dowse.serve.plain_text import clean, clean_line, clean_path, plural
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.store.sql.judgments import Judgment
    from dowse.types import QueryRequest, ScoredChunk

FILE = click.Path(path_type=Path, dir_okay=False)
GRADES = {"y": 1.0, "n": 0.0, "0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0}
_JUDGED = ("query", "target", "grade", "source_uri")
_SHOWN_LINES = 12  # of a hit
JUDGE_OPTIONS = (
    option("--grade", "given", multiple=True, metavar="ID=N", help="Grade a chunk without a prompt; can be repeated."),
    option("--list", "listed", is_flag=True, help="Print all judgments: query, chunk, grade."),
    option("--forget", is_flag=True, help="Delete the judgments of QUERY."),
    option(
        "--export", type=FILE, metavar="FILE", help="Write all judgments as TREC qrels, the queries to FILE.queries."
    ),
    option("--import", "imported", type=FILE, metavar="FILE", help="Read judgments written by --export."),
)


@click.command(cls=QueryCommand)
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@add(JUDGE_OPTIONS)
@add(query_options(("profile", "rerank", "top_k"), old=()))
def judge(session: CommandSession, words: tuple[str, ...], **flags: Any) -> int:
    """Grade results, for `dowse eval --judged`.

    \b
    dowse judge where do we retry payments
    dowse judge retry payments --grade 3f9c2ab7d1e04c55=1
    dowse judge --export ours.qrels
    dowse eval --judged

    At each result, type y, n or a grade from 0 to 3; enter skips it, q quits.
    """
    from dowse.evaluate import judgments as feedback

    index = session.existing_index()
    query = " ".join(words)
    if flags["listed"] or flags["export"] or flags["imported"]:
        return _exchange(session, index, flags["export"], flags["imported"])
    if not query.strip():
        command = "dowse judge --forget" if flags["forget"] else "dowse judge"
        raise BadRequestError(f"missing query; run: {command} where do we retry payments")
    if flags["forget"]:
        count = feedback.forget(index, query)
        session.emit(f"Deleted {plural(count, 'judgment')}.")
        return Exit.HITS if count else Exit.NOTHING
    request = request_of(session, query, {"top_k": 10} | request_fields(flags))
    found = _given(session, query, flags["given"]) if flags["given"] else _prompted(session, request)
    feedback.keep(index, found)
    session.answer(
        {"query": query, "judgments": {each.target: each.grade for each in found}},
        f"Stored {plural(len(found), 'judgment')}. Measure: dowse eval --judged",
    )
    return Exit.HITS


def _exchange(session: CommandSession, index: Path, export: Path | None, imported: Path | None) -> int:
    from dowse.evaluate import judgments as feedback

    if imported:
        count = feedback.import_qrels(index, imported)
        session.emit(f"Imported {plural(count, 'judgment')}.")
        return Exit.HITS
    if export:
        count = feedback.export_qrels(index, export)
        session.emit(f"Exported {plural(count, 'judgment')}.")
        return Exit.HITS if count else Exit.NOTHING
    kept = feedback.kept(index)
    session.answer(
        {"judgments": [{name: getattr(each, name) for name in _JUDGED} for each in kept]},
        *(f"{clean_line(each.query)}\t{each.target}\t{each.grade:g}\t{clean_path(each.source_uri)}" for each in kept),
    )
    return Exit.HITS if kept else Exit.NOTHING


def _given(session: CommandSession, query: str, given: tuple[str, ...]) -> list[Judgment]:
    from dowse.evaluate.datasets import grade_of
    from dowse.store.sql.judgments import Judgment

    found, now = [], datetime.now(UTC)
    with session.open_reader() as engine:
        for text in given:
            target, equals, grade = text.rpartition("=")
            if not equals:
                raise BadRequestError(f"--grade {text!r} has no grade; write --grade 3f9c2ab7d1e04c55=1")
            chunk = engine.show(target)[0]
            found.append(Judgment(query, chunk.id, grade_of(grade, f"--grade {text}"), chunk.source_uri, now))
    return found


def _prompted(session: CommandSession, request: QueryRequest) -> list[Judgment]:
    """Show one result after the other and ask for its grade."""
    from dowse.store.sql.judgments import Judgment

    if not sys.stdin.isatty():
        raise BadRequestError(f"stdin is not a terminal; run: dowse judge {request.text} --grade ID=1")
    with session.open_reader() as engine:
        result = engine.query(request)
    found: list[Judgment] = []
    for rank, chunk in enumerate(result.chunks, start=1):
        click.echo(_shown(rank, chunk))
        grade = _ask()
        if grade is None:
            break
        if grade >= 0:
            found.append(Judgment(request.text, chunk.id, grade, chunk.source_uri, datetime.now(UTC)))
    return found


def _ask() -> float | None:
    """Ask for a grade; −1 skips, None quits."""
    while True:
        typed = (
            click.prompt("Relevant? y, n or 0-3; enter skips, q quits", default="", show_default=False).strip().lower()
        )
        if typed == "q":
            return None
        if not typed or typed in GRADES:
            return GRADES.get(typed, -1.0)


def _shown(rank: int, chunk: ScoredChunk) -> str:
    lines = clean(chunk.text).split("\n")[:_SHOWN_LINES]
    place = f"{clean_path(chunk.source_uri)}:{chunk.start_line or 1}"
    return "\n".join([f"\n{rank}. {place}  {chunk.id}", *(f"    {line}" for line in lines)])
