"""`dowse search`: flags and queries enter, hits leave on stdout: for people, for pipes or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import BARE_WORD
from dowse.cli.session import Session, shared_options
from dowse.errors import BadRequestError, NoIndexError
from dowse.serve.wire import flags as cli_search_flags
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.serve.plain_text import Places
    from dowse.types import QueryRequest, QueryResult


@dataclass(frozen=True)
class Output:
    """How hits are printed."""

    jsonl: bool
    trec: bool
    files: bool
    null: bool
    context_lines: int
    explain: bool


@click.command(epilog="Queries come from standard input, one a line, when there is none or it is `-`.")
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@cli_search_flags.add(cli_search_flags.REQUEST)
@cli_search_flags.add(cli_search_flags.OUTPUT)
@shared_options
def search(session: Session, words: tuple[str, ...], **flags: Any) -> int:
    """Search the index; `dowse QUERY` does the same.

    \b
    dowse search "where do we retry payments"
    dowse search --corpus DOC --since 90d rollback
    dowse search -l ConnectionResetError | xargs less
    """
    output = Output(explain=flags["explain"], **{name: flags.pop(name) for name in _OUTPUT_NAMES})
    if output.null and not output.files:
        raise BadRequestError("-0 goes with -l; type: dowse search -l -0 QUERY")
    code = Exit.NOTHING
    try:
        with session.open_reader() as engine:
            printer = Printer(session, output, engine)
            for asked in _queries(words):
                name, text = _named(asked) if output.trec else ("", asked)
                result = engine.query(request_of(session, text, flags))
                printer.show(result, name)
                code = min(code, _code(session, result), key=_SEVERITY.index)
    except NoIndexError as err:
        raise NoIndexError(f"{err}{_did_you_mean()}") from err
    if code == Exit.NOTHING and (hint := _did_you_mean()):
        session.note(f"dowse: nothing found{hint}")
    return code


_OUTPUT_NAMES = ("jsonl", "trec", "files", "null", "context_lines")
# Of several queries: a remote failure is told whatever else happened, and one hit makes it a success.
_SEVERITY = (Exit.REMOTE, Exit.HITS, Exit.NOTHING)


@dataclass(frozen=True)
class Printer:
    """Prints results, each when it arrives."""

    session: Session
    output: Output
    engine: Engine

    def show(self, result: QueryResult, name: str = "") -> None:
        """`name` is the query's id, for TREC."""
        for lost in result.degraded:
            self.session.note(f"dowse: {lost.stage}: {lost.reason}")
        if result.nothing_found and result.chunks:
            self.session.note("dowse: nothing found that answers this; these are the nearest misses")
        if self.session.as_json:
            self._json(result)
        elif self.output.jsonl:
            self._jsonl(result)
        elif self.output.trec:
            self._trec(result, name)
        elif self.output.files:
            self._files(result)
        elif self.session.pretty:
            self._pretty(result)
        else:
            self._lines(result)
        sys.stdout.flush()
        metadata = result.query_metadata
        stages = ", ".join(f"{stage} {spent_ms:.1f}" for stage, spent_ms in metadata.stages)
        self.session.detail(f"{len(result.chunks)} hits in {metadata.total_ms:.1f} ms ({stages})")

    def _json(self, result: QueryResult) -> None:
        from dowse.serve.wire import result as wire

        self.session.emit_json(wire.result_object(result))

    def _jsonl(self, result: QueryResult) -> None:
        from dowse.serve.wire import result as wire

        for rank, chunk in enumerate(result.chunks, start=1):
            row = {"query": result.query, "rank": rank} | wire.chunk_object(chunk)
            click.echo(wire.encode(row))

    def _trec(self, result: QueryResult, name: str) -> None:
        from dowse.evaluate.trec import run_lines

        for line in run_lines({name: [(chunk.id, chunk.final_score) for chunk in result.chunks]}):
            self.session.emit(line)

    def _files(self, result: QueryResult) -> None:
        from dowse.serve.plain_text import clean_path

        places = self._places()
        paths = dict.fromkeys(places.of(chunk).path for chunk in result.chunks)
        for path in paths:
            if self.output.null:
                click.echo(path.encode("utf-8", "surrogateescape") + b"\0", nl=False)
            else:
                self.session.emit(clean_path(path))

    def _lines(self, result: QueryResult) -> None:
        from dowse.serve.plain_text import bullets, explain_lines, hit_line

        places = self._places()
        for chunk in result.chunks:
            self.session.emit(hit_line(chunk, places.of(chunk)))
            if self.output.explain:
                self.session.emit(bullets(explain_lines(chunk)))

    def _pretty(self, result: QueryResult) -> None:
        from dowse.cli import rich_output as terminal_rich

        console = terminal_rich.console(self.session.env, refused=self.session.no_colour)
        look = terminal_rich.Look(self._places(), self.output.context_lines, self.output.explain)
        terminal_rich.print_result(console, result, look)

    def _places(self) -> Places:
        from dowse.serve.plain_text import Places

        return Places({source.name: source.root for source in self.engine.sources()}, self.session.cwd)


def _queries(words: tuple[str, ...]) -> Iterator[str]:
    """The query that was typed, or those on standard input."""
    if words and words != ("-",):
        # Arguments that are not valid UTF-8 arrive with lone surrogates, which nothing indexed can hold.
        yield " ".join(words).encode("utf-8", "replace").decode("utf-8")
        return
    if not words and sys.stdin.isatty():
        raise BadRequestError('what do you look for? type: dowse search "words or a question"')
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield text


def _named(line: str) -> tuple[str, str]:
    """The query's id and text: `ID<TAB>QUERY`, as `dowse judge --export` writes them, or a text that names itself."""
    from dowse.evaluate.feedback import query_id

    name, tab, text = line.partition("\t")
    return (name.strip(), text.strip()) if tab and name.strip() and text.strip() else (query_id(line), line)


def request_of(session: Session, text: str, flags: dict[str, Any]) -> QueryRequest:
    from dowse.types import QueryRequest

    given = dict(flags)
    given["top_k"] = given["top_k"] if given["top_k"] is not None else session.config.top_k
    given["profile"] = given["profile"] or session.config.profile
    return QueryRequest(text, **given)


def _code(session: Session, result: QueryResult) -> Exit:
    dense_answered = "dense" in dict(result.query_metadata.counts)
    dense_lost = any(lost.stage == "dense" for lost in result.degraded)
    if session.remote_model and dense_lost and not dense_answered:
        return Exit.REMOTE
    return Exit.HITS if result.chunks else Exit.NOTHING


def _did_you_mean() -> str:
    """A command that the first word of a bare query may have been meant to be."""
    ctx = click.get_current_context()
    word = ctx.meta.get(BARE_WORD)
    if not word:
        return ""
    from difflib import get_close_matches

    root = ctx.find_root()
    names = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.75)
    return f"; or did you mean: dowse {close[0]}" if close else ""
