"""`dowse demo`: the bundled sample project enters; an index of it and a few explained results leave."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dowse.cli.find.search import ResultPrinter, SearchOutput
from dowse.cli.manage.index import summary
from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.config import FLAG, INDEX_FOLDER
from dowse.serve.wire import flags
from dowse.serve.wire.result import Exit, plain, report_object, result_object

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.reports import IndexReport
    from dowse.sample import SampleQuery

TOP_K = 3
ACTS = {  # queries of the sample, chosen: with the default model the first result is right
    "fetchWithBackoff": "a name in code",
    "revert a failed push": "a question that shares no word with its answer",
    "redis: connection pool timeout": "a pasted error message",
    "retry budget": "common words and a filter",
}


@click.command(cls=SessionCommand)
@option("--keep", is_flag=True, help="Keep the sample and its index for further searches.")
def demo(session: CommandSession, keep: bool) -> int:
    """Index the bundled sample project and search it.

    \b
    dowse demo
    dowse demo --keep
    dowse demo --index ./acme-index --json

    Copies the sample to a temporary folder and deletes it at the end, unless --keep or --index is given.
    """
    from dowse import sample

    named = session.config.index if session.config.origin("index") == FLAG else None
    kept = keep or named is not None
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="dowse-demo-"))
        if not kept:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # A copy: in the package, git or ignore rules would change the indexed files.
        files = Path(shutil.copytree(sample.root(), folder / sample.root().name))
        place = named or files / INDEX_FOLDER
        session = msgspec.structs.replace(session, config=replace(session.config, index=place))
        engine = stack.enter_context(session.open_writer(create=True))
        report = _index(session, engine, files)
        by_text = {query.text: query for query in sample.queries()}
        answers = [_search(session, engine, by_text[text]) for text in ACTS]
        if session.as_json:
            session.emit_json({"index": str(place), "report": report_object(report), "queries": answers})
    if not session.as_json:
        _next(session, files, place, kept=kept)
    return Exit.HITS


def _index(session: CommandSession, engine: Engine, files: Path) -> IndexReport:
    from dowse.cli.rich_output import progress

    if not session.as_json:
        session.emit("$ dowse index .")
    with progress(wanted=not session.quiet) as report:
        done = engine.index([files], report=report)
    if not session.as_json:
        session.emit(summary(done))
    if done.embedding_note:
        session.note(f"dowse: {done.embedding_note}")
    return done


def _search(session: CommandSession, engine: Engine, query: SampleQuery) -> dict[str, Any]:
    from dowse.types import QueryRequest

    filters: dict[str, Any] = dict(query.filters)
    result = engine.query(QueryRequest(query.text, top_k=TOP_K, explain=True, **filters))
    rank = next((at for at, chunk in enumerate(result.chunks, start=1) if chunk.file_path == query.expect), None)
    if not session.as_json:
        session.emit(f"\n# {ACTS[query.text]}: {query.why}")
        session.emit(f"$ {command_line(query)}")
        ResultPrinter(session, SearchOutput(explain=True), engine).show(result)
        session.emit(f"→ {query.expect} is {f'#{rank}' if rank else f'not in the first {TOP_K} results'}")
        return {}
    row: dict[str, Any] = plain(query)
    return row | {"filters": dict(query.filters), "rank": rank, "result": result_object(result)}


def command_line(query: SampleQuery) -> str:
    """Spell the query as a user types it."""
    words = [word for field, value in query.filters for word in flags.words(field, [value])]
    return shlex.join(["dowse", *(["search"] if words else []), *words, query.text])


def _next(session: CommandSession, files: Path, place: Path, *, kept: bool) -> None:
    where = [] if place.parent == files else ["--index", str(place)]
    if kept:
        first = shlex.join(["dowse", *where, "how do we roll back"])
        session.note(f"\nNext:\n  cd {shlex.quote(str(files))}\n  {first}\n  {shlex.join(['dowse', *where, 'status'])}")
    else:
        session.note("\nNext:\n  dowse demo --keep          # keep the sample and search it")
    session.note('  dowse index ~/code/app     # index your own files\n  dowse "where do we retry payments"')
