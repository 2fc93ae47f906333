"""`dowse judge`: a query enters, its hits are shown one by one, and what a person says of each is kept in the index."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session, shared_options
from dowse.errors import BadRequestError
from dowse.serve.plain_text import clean, clean_line, clean_path, plural
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.store.sql.judgments import Judgment
    from dowse.types import ScoredChunk

FILE = click.Path(path_type=Path, dir_okay=False)
GRADES = {"y": 1.0, "n": 0.0, "0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0}
_SHOWN_LINES = 12  # of a hit


@click.command()
@click.argument("words", nargs=-1, metavar="[QUERY...]")
@click.option(
    "-k", "--limit", "top_k", type=click.IntRange(1), default=10, help="How many hits to judge.  [default: 10]"
)
@click.option("--grade", "given", multiple=True, metavar="ID=N", help="Judge without asking: a chunk's id and a grade.")
@click.option("--list", "listed", is_flag=True, help="Print what was judged, as query, chunk, grade.")
@click.option("--forget", is_flag=True, help="Forget what was said of QUERY.")
@click.option("--export", type=FILE, metavar="FILE", help="Write all judgments as TREC qrels, and FILE.queries beside.")
@click.option("--import", "imported", type=FILE, metavar="FILE", help="Read what --export wrote.")
@shared_options
def judge(
    session: Session,
    words: tuple[str, ...],
    top_k: int,
    given: tuple[str, ...],
    listed: bool,
    forget: bool,
    export: Path | None,
    imported: Path | None,
) -> int:
    """Say which hits are right, for `dowse eval --judged`.

    \b
    dowse judge where do we retry payments
    dowse judge retry payments --grade 3f9c2ab7d1e04c55=1
    dowse judge --export ours.qrels
    dowse eval --judged

    For each hit type y, n or a grade from 0 to 3; enter skips, q ends.
    """
    from dowse.evaluate import feedback

    index = session.existing_index()
    query = " ".join(words)
    if listed or export or imported:
        return _exchange(session, index, export, imported)
    if not query.strip():
        raise BadRequestError("which query shall be judged? type: dowse judge where do we retry payments")
    if forget:
        count = feedback.forget(index, query)
        session.emit(f"forgot {plural(count, 'judgment')}")
        return Exit.HITS if count else Exit.NOTHING
    found = _given(session, query, given) if given else _asked(session, query, top_k)
    feedback.keep(index, found)
    if session.as_json:
        session.emit_json({"query": query, "judgments": {each.target: each.grade for each in found}})
    else:
        session.emit(f"kept {plural(len(found), 'judgment')}; measure with: dowse eval --judged")
    return Exit.HITS


def _exchange(session: Session, index: Path, export: Path | None, imported: Path | None) -> int:
    from dowse.evaluate import feedback

    if imported:
        count = feedback.import_qrels(index, imported)
        session.emit(f"read {plural(count, 'judgment')}")
        return Exit.HITS
    if export:
        count = feedback.export_qrels(index, export)
        session.emit(f"wrote {plural(count, 'judgment')}")
        return Exit.HITS if count else Exit.NOTHING
    kept = feedback.kept(index)
    if session.as_json:
        rows = [{"query": j.query, "target": j.target, "grade": j.grade, "source_uri": j.source_uri} for j in kept]
        session.emit_json({"judgments": rows})
    for each in () if session.as_json else kept:
        session.emit(f"{clean_line(each.query)}\t{each.target}\t{each.grade:g}\t{clean_path(each.source_uri)}")
    return Exit.HITS if kept else Exit.NOTHING


def _given(session: Session, query: str, given: tuple[str, ...]) -> list[Judgment]:
    from dowse.evaluate.datasets import grade_of
    from dowse.store.sql.judgments import Judgment

    found = []
    with session.open_reader() as engine:
        for text in given:
            target, equals, grade = text.rpartition("=")
            if not equals:
                raise BadRequestError(f"--grade {text!r} has no grade; write it as 3f9c2ab7d1e04c55=1")
            chunk = engine.show(target)[0]
            found.append(Judgment(query, chunk.id, grade_of(grade, f"--grade {text}"), chunk.source_uri, _now()))
    return found


def _asked(session: Session, query: str, top_k: int) -> list[Judgment]:
    """One hit after the other."""
    from dowse.store.sql.judgments import Judgment

    if not sys.stdin.isatty():
        raise BadRequestError(f"nobody is there to ask; judge with: dowse judge {query} --grade ID=1")
    with session.open_reader() as engine:
        result = engine.query(query, top_k=top_k)
    found: list[Judgment] = []
    for rank, chunk in enumerate(result.chunks, start=1):
        click.echo(_shown(rank, chunk))
        grade = _answer()
        if grade is None:
            break
        if grade >= 0:
            found.append(Judgment(query, chunk.id, grade, chunk.source_uri, _now()))
    return found


def _answer() -> float | None:
    """A grade; −1 to skip, None to end."""
    while True:
        typed = click.prompt("right? y n 0-3, enter skips, q ends", default="", show_default=False).strip().lower()
        if typed == "q":
            return None
        if not typed or typed in GRADES:
            return GRADES.get(typed, -1.0)


def _shown(rank: int, chunk: ScoredChunk) -> str:
    lines = clean(chunk.text).split("\n")[:_SHOWN_LINES]
    place = f"{clean_path(chunk.source_uri)}:{chunk.start_line or 1}"
    return "\n".join([f"\n{rank}. {place}  {chunk.id}", *(f"    {line}" for line in lines)])


def _now() -> datetime:
    return datetime.now(UTC)
