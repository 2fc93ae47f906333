"""`dowse search`: flags and queries enter; results leave on stdout for people, for pipes or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dowse.cli.options import BARE_WORD, add, option
from dowse.cli.query_options import QueryCommand, query_options, request_fields, request_of
from dowse.cli.session import CommandSession
from dowse.errors import BadRequestError, NoIndexError
from dowse.serve.plain_text import ChunkLocator, bullets, clean_line, clean_path, explain_lines, hit_line
from dowse.serve.wire.result import Exit, result_object

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.types import QueryResult

# Of several queries: a remote failure outweighs everything, and one result makes it a success.
_SEVERITY = (Exit.REMOTE, Exit.HITS, Exit.NOTHING)

OUTPUT = (
    option("-l", "--files-with-matches", "files", is_flag=True, group="Output", help="Print paths only, each once."),
    option("-0", "--null", "null", is_flag=True, group="Output", rare=True, help="End each path with NUL, with -l."),
    option("-C", "--context", "context_lines", type=click.IntRange(0), default=1, metavar="N", group="Output",
           help="Show N lines around the best line, on a terminal [default: 1]."),
    option("--scores", is_flag=True, group="Output", help="Print the confidence of each result, in a pipe."),
    option("--jsonl", is_flag=True, group="Output", help="Print each result as one line of JSON."),
    option("--trec", is_flag=True, group="Output", rare=True,
           help="Print a TREC run. Each query is TEXT or ID<TAB>TEXT."),
)  # fmt: skip


class SearchOutput(msgspec.Struct, frozen=True):
    """Format of printed results."""

    jsonl: bool = False
    trec: bool = False
    files: bool = False
    null: bool = False
    scores: bool = False
    context_lines: int = 0
    explain: bool = False


@click.command(cls=QueryCommand, epilog="Without QUERY, or with `-`, Dowse reads queries from stdin, one per line.")
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@add(query_options())
@add(OUTPUT)
def search(session: CommandSession, words: tuple[str, ...], **flags: Any) -> int:
    """Search the index; `dowse QUERY` does the same.

    \b
    dowse search "where do we retry payments"
    dowse search --corpus DOC --since 90d rollback
    dowse search -l ConnectionResetError | xargs less

    Filters can be repeated; a result matches one of their values.
    """
    fields = request_fields(flags)
    output = SearchOutput(explain=fields.get("explain", False), **flags)
    if output.null and not output.files:
        raise BadRequestError("-0 needs -l; run: dowse search -l -0 QUERY")
    if not (session.as_json or output.jsonl or output.trec):
        fields.setdefault("group", "document")  # for people; programs that read JSON ask for it
    fields.setdefault("syntax", "plain" if output.trec else "operators")
    code = Exit.NOTHING
    try:
        with session.open_reader() as engine:
            printer = ResultPrinter(session, output, engine)
            for line in _queries(words):
                name, text = _named(line) if output.trec else ("", line)
                result = engine.query(request_of(session, text, fields))
                printer.show(result, name)
                code = min(code, _code(session, result), key=_SEVERITY.index)
    except NoIndexError as err:
        raise NoIndexError(f"{err}{_did_you_mean()}") from err
    hint = _did_you_mean()
    if code == Exit.NOTHING and (hint or not (session.pretty or session.as_json)):
        session.note(f"dowse: no results{hint}")
    return code


class ResultPrinter(msgspec.Struct, frozen=True):
    """Printer of results, each when it is ready."""

    session: CommandSession
    output: SearchOutput
    engine: Engine

    def show(self, result: QueryResult, name: str = "") -> None:
        """Print one result; `name` is the query's id, for TREC."""
        for lost in result.degraded:
            about = "" if lost.stage == "filter" else f"stage {lost.stage}: "
            self.session.note(f"dowse: {about}{lost.reason}")
        if result.nothing_found and result.chunks:
            self.session.note("dowse: no good match; these are the nearest results")
        if result.metadata_answer and not self.session.as_json:
            own = self.output.jsonl or self.output.trec or self.output.files  # lines for programs stay apart
            answer = "\n".join(map(clean_line, result.metadata_answer.splitlines()))
            (self.session.note if own else self.session.emit)(answer)
        if self.session.as_json:
            self.session.emit_json(result_object(result))
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
        self.session.detail(f"{len(result.chunks)} results in {metadata.total_ms:.1f} ms ({stages})")

    def _jsonl(self, result: QueryResult) -> None:
        from dowse.serve.wire import result as wire

        for rank, chunk in enumerate(result.chunks, start=1):
            row = {"query": result.query, "rank": rank} | wire.chunk_object(chunk)
            click.echo(wire.encode(row))

    def _trec(self, result: QueryResult, name: str) -> None:
        from dowse.evaluate.trec import run_lines

        self.session.emit(*run_lines({name: [(chunk.id, chunk.final_score) for chunk in result.chunks]}))

    def _files(self, result: QueryResult) -> None:
        places = self._places()
        paths = dict.fromkeys(places.of(chunk).path for chunk in result.chunks)
        for path in paths:
            if self.output.null:
                click.echo(path.encode("utf-8", "surrogateescape") + b"\0", nl=False)
            else:
                self.session.emit(clean_path(path))

    def _lines(self, result: QueryResult) -> None:
        from dowse.serve.best_line import Marker
        from dowse.tokenizer import Tokenizer

        places, marker = self._places(), Marker(result.query, Tokenizer())
        for chunk in result.chunks:
            self.session.emit(hit_line(chunk, places.of(chunk), marker, scores=self.output.scores))
            if self.output.explain:
                self.session.emit(bullets(explain_lines(chunk)))

    def _pretty(self, result: QueryResult) -> None:
        from dowse.cli import rich_output

        console = rich_output.console(self.session.env, refused=self.session.no_colour)
        rich_output.print_result(console, result, self._places(), self.output)

    def _places(self) -> ChunkLocator:
        return ChunkLocator({source.name: source.root for source in self.engine.sources()}, self.session.cwd)


def _queries(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the typed query, or those on standard input."""
    if words and words != ("-",):
        # Arguments that are not valid UTF-8 arrive with lone surrogates, which no indexed text contains.
        yield " ".join(words).encode("utf-8", "replace").decode("utf-8")
        return
    if not words and sys.stdin.isatty():
        raise BadRequestError('missing query; run: dowse search "where do we retry payments"')
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield text


def _named(line: str) -> tuple[str, str]:
    """Split `ID<TAB>QUERY`, as `dowse judge --export` writes it; the id of a text alone is its hash."""
    from dowse.evaluate.judgments import query_id

    name, tab, text = line.partition("\t")
    return (name.strip(), text.strip()) if tab and name.strip() and text.strip() else (query_id(line), line)


def _code(session: CommandSession, result: QueryResult) -> Exit:
    dense_answered = "dense" in dict(result.query_metadata.counts)
    dense_lost = any(lost.stage == "dense" for lost in result.degraded)
    if session.remote_model and dense_lost and not dense_answered:
        return Exit.REMOTE
    return Exit.HITS if result.chunks or result.metadata_answer else Exit.NOTHING


def _did_you_mean() -> str:
    """Suggest the command that the first word of a bare query resembles."""
    ctx = click.get_current_context()
    word = ctx.meta.get(BARE_WORD)
    if not word:
        return ""
    from difflib import get_close_matches

    root = ctx.find_root()
    names = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.75)
    return f"; or did you mean: dowse {close[0]}" if close else ""
