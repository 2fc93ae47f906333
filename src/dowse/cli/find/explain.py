"""`dowse explain`: a query and a target enter; the target's rank or the reason why it is missing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import add
from dowse.cli.query_options import QueryCommand, query_options, request_fields, request_of
from dowse.cli.session import CommandSession
from dowse.serve.page.copy import command_line
from dowse.serve.plain_text import SCORE_DIGITS, bullets, clean_line, clean_path, explain_lines, table
from dowse.serve.wire.flags import FIELDS
from dowse.serve.wire.result import Exit, explain_object

if TYPE_CHECKING:
    from dowse.query.explain.explanation import Explanation
    from dowse.types import QueryRequest


@click.command(cls=QueryCommand)
@click.argument("query")
@click.argument("target")
@add(query_options(each for each in FIELDS if each != "explain"))
def explain(session: CommandSession, query: str, target: str, **flags: Any) -> int:
    """Explain the rank of a file, line or chunk, or why it is missing.

    \b
    dowse explain "retry payments" src/retry.go
    dowse explain --lang go "retry payments" src/retry.py:40
    dowse explain "retry payments" 3f9c2ab7d1e04c55

    TARGET is a path, PATH:LINE or a chunk's id. For a result, prints its rank and the score of each stage. For a
    missing target, prints the stage that dropped it and a command that finds it. Exit code 0: result, 1: missing.
    """
    fields = request_fields(flags)
    if not session.as_json:
        fields.setdefault("group", "document")  # as `dowse search` ranks for people
    fields.setdefault("syntax", "operators")
    request = request_of(session, query, fields)
    with session.open_reader() as engine:
        answer = engine.explain(request, target)
    session.answer(explain_object(answer), *explanation(answer, request))
    return Exit.NOTHING if answer.rank is None else Exit.HITS


def explanation(answer: Explanation, request: QueryRequest) -> Iterator[str]:
    """Format an explanation: the verdict, the command to type next, and a line for each stage."""
    chunk = answer.chunk
    about = clean_line(chunk.qualified_name or chunk.symbol_name or chunk.section_path or chunk.document_title)
    yield f"{clean_path(chunk.source_uri)}:{chunk.start_line or 1}  {about}  {chunk.id}"
    if (hit := answer.hit) is not None:
        yield f"Rank {answer.rank}, score {hit.final_score:.{SCORE_DIGITS}f}."
        yield bullets(explain_lines(hit))
        return
    if answer.dropped_at is not None:
        yield f"Missing. Dropped at stage {answer.dropped_at.stage}: {clean_line(answer.dropped_at.reason)}."
    if answer.verified is not None:
        changed = replace(request, **dict(answer.verified.remedy.fields))
        yield f"Fix: {clean_line(answer.verified.remedy.text)}. The target then ranks {answer.verified.rank}."
        yield f"Try: {command_line(changed)}"
    else:
        yield f"No fix found: Dowse tried {answer.tried} changes to the query."
    rows = [
        (each.stage, "-" if each.rank is None else str(each.rank), str(each.of), clean_line(each.note))
        for each in answer.trace
    ]
    yield bullets(table([("stage", "rank", "of", "note"), *rows], right=(1, 2)))
