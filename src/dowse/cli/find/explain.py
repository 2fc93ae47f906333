"""`dowse explain`: a question and a place enter; why it is not among the hits, and what would bring it, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dowse.cli.find.search import request_of
from dowse.cli.session import Session, shared_options
from dowse.serve.wire import flags as cli_search_flags
from dowse.serve.wire.result import Exit, explain_object

if TYPE_CHECKING:
    from dowse.query.explain.explanation import WhyNot
    from dowse.query.explain.trace import Place


@click.command()
@click.argument("query")
@click.argument("target")
@cli_search_flags.add(cli_search_flags.REQUEST)
@shared_options
def explain(session: Session, query: str, target: str, **flags: Any) -> int:
    """Say why a chunk, a line or a document is not among the hits.

    \b
    dowse explain "retry payments" src/retry.go
    dowse explain --lang go "retry payments" src/retry.py:40
    dowse explain "retry payments" 3f9c2ab7d1e04c55

    Follows the place through every stage, and tries changes of the query until one brings it in. Exit code 0 when it
    is among the hits, 1 when it is not.
    """
    with session.open_reader() as engine:
        answer = engine.explain(request_of(session, query, flags), target)
    if session.as_json:
        session.emit_json(explain_object(answer))
    else:
        for line in lines(answer):
            session.emit(line)
    return Exit.HITS if answer.rank is not None else Exit.NOTHING


def lines(answer: WhyNot) -> list[str]:
    from dowse.serve.plain_text import bullets, clean_line, clean_path, table

    chunk = answer.chunk
    place = f"{clean_path(chunk.source_uri)}:{chunk.start_line or 1}"
    rows = [(each.stage, _rank(each), f"{each.of}", clean_line(each.note)) for each in answer.way]
    told = [f"{place}  {clean_line(chunk.symbol_name or chunk.section_path or chunk.document_title)}  {chunk.id}"]
    told.append(bullets(table([("stage", "rank", "of", "note"), *rows], right=(1, 2))))
    if answer.rank is not None:
        return [*told, f"It is among the hits, at rank {answer.rank}."]
    if answer.loss is not None:
        told.append(f"Lost at {answer.loss.stage}: {clean_line(answer.loss.reason)}.")
    if answer.change is not None:
        told.append(f"It comes, at rank {answer.change.rank}: {clean_line(answer.change.remedy.told)}.")
    else:
        told.append(f"None of {answer.tried} changes brings it in.")
    return told


def _rank(place: Place) -> str:
    return "-" if place.rank is None else str(place.rank)
