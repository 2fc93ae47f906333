"""`dowse demo`: nothing enters, the sample company is indexed, and a handful of explained answers leaves."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.find.search import Output, Printer, search
from dowse.cli.manage.index import summary
from dowse.cli.session import Session, shared_options
from dowse.config import FLAG, INDEX_FOLDER
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.reports import IndexReport
    from dowse.sample import SampleQuery
    from dowse.types import QueryResult

TOP_K = 3
ACTS = (  # texts of the sample's queries, chosen: the default model answers each of them with its first hit
    ("fetchWithBackoff", "a name from the code"),
    ("revert a failed push", "a question that shares no word with its answer"),
    ("redis: connection pool timeout", "an error message, pasted"),
    ("retry budget", "words that are everywhere, and a filter"),
)


@click.command()
@click.option("--keep", is_flag=True, help="Keep the sample and its index, to go on searching.")
@shared_options
def demo(session: Session, keep: bool) -> int:
    """Index a small sample company and search it.

    \b
    dowse demo
    dowse demo --keep
    dowse demo --index ./acme-index --json

    The sample is copied to a temporary folder; with --keep or --index it stays there.
    """
    named = session.config.index if session.config.origin("index") == FLAG else None
    kept = keep or named is not None
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="dowse-demo-"))
        if not kept:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        files = _copy_sample(folder)
        place = named or files / INDEX_FOLDER
        session = replace(session, config=replace(session.config, index=place))
        engine = stack.enter_context(session.open_writer(create=True))
        report = _index(session, engine, files)
        answers = [_ask(session, engine, query) for query in _telling()]
        if session.as_json:
            from dowse.serve.wire.result import report_object

            session.emit_json({"index": str(place), "report": report_object(report), "queries": answers})
    if not session.as_json:
        _next(session, files, place, kept=kept)
    return Exit.HITS


def _copy_sample(folder: Path) -> Path:
    """Away from the package: in a git work tree the source would be the whole tree, and a .venv is ignored."""
    from dowse import sample

    return Path(shutil.copytree(sample.root(), folder / sample.root().name))


def _index(session: Session, engine: Engine, files: Path) -> IndexReport:
    from dowse.cli import rich_output as terminal_rich

    if not session.as_json:
        session.emit("$ dowse index .")
    with terminal_rich.progress(wanted=not session.quiet) as report:
        done = engine.index([files], report=report)
    if not session.as_json:
        session.emit(summary(done))
    if done.embedding_note:
        session.note(f"dowse: {done.embedding_note}")
    return done


def _telling() -> list[SampleQuery]:
    from dowse.sample import QUERIES

    by_text = {query.text: query for query in QUERIES}
    return [by_text[text] for text, _ in ACTS]


def _ask(session: Session, engine: Engine, query: SampleQuery) -> dict[str, Any]:
    from dowse.types import QueryRequest

    filters: dict[str, Any] = dict(query.filters)
    result = engine.query(QueryRequest(query.text, top_k=TOP_K, explain=True, **filters))
    rank = _rank(result, query.expect)
    if not session.as_json:
        session.emit(f"\n# {dict(ACTS)[query.text]}: {query.why}")
        session.emit(f"$ {command_line(query)}")
        output = Output(jsonl=False, trec=False, files=False, null=False, context_lines=0, explain=True)
        Printer(session, output, engine).show(result)
        session.emit(f"→ {query.expect} is {f'#{rank}' if rank else f'not among the first {TOP_K}'}")
        return {}
    from dowse.serve.wire.result import plain, result_object

    row: dict[str, Any] = plain(query)
    return row | {"filters": dict(query.filters), "rank": rank, "result": result_object(result)}


def _rank(result: QueryResult, path: str) -> int | None:
    ranks = (rank for rank, chunk in enumerate(result.chunks, start=1) if chunk.file_path == path)
    return next(ranks, None)


def command_line(query: SampleQuery) -> str:
    """What a person would type for the query."""
    flags = {param.name: param.opts[-1] for param in search.params if isinstance(param, click.Option)}
    words = [word for field, value in query.filters for word in (flags[field], value)]
    return shlex.join(["dowse", *(["search"] if words else []), *words, query.text])


def _next(session: Session, files: Path, place: Path, *, kept: bool) -> None:
    where = [] if place.parent == files else ["--index", str(place)]
    if kept:
        first = shlex.join(["dowse", *where, "how do we roll back"])
        session.note(
            f"\nGo on:\n  cd {shlex.quote(str(files))}\n  {first}\n  {shlex.join(['dowse', *where, 'status'])}"
        )
    else:
        session.note("\nGo on:\n  dowse demo --keep          # to search the sample yourself")
    session.note('  dowse index ~/code/app     # your own files\n  dowse "where do we retry payments"')
