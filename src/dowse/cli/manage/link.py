"""`dowse link`: an index enters; its chunks are tied by rules or by a language model, and counts leave."""

from __future__ import annotations

import click

from dowse.cli.session import Session, shared_options
from dowse.serve.wire.result import Exit


@click.command()
@click.option("--again", is_flag=True, help="Link all documents anew, not only what changed.")
@click.option("--llm", is_flag=True, help="Let the configured language model find further edges.")
@click.option("--most", metavar="N", type=click.IntRange(1), help="With --llm: ask about N documents, then stop.")
@click.option("--within", is_flag=True, help="With --llm: only within documents, not between them.")
@shared_options
def link(session: Session, again: bool, llm: bool, most: int | None, within: bool) -> int:
    """Tie chunks to what they speak of.

    \b
    dowse link                    what changed, by the rules
    dowse link --again            all anew
    dowse link --llm --most 50    by a language model, 50 documents

    `dowse index` links what it reads, so this is only needed after an upgrade, or for --llm, which costs money: it
    sends the text of your documents to the endpoint in `llm_base_url`. It can be interrupted and run again.
    """
    with session.open_writer(create=False) as engine:
        if llm:
            from dowse.ingest.links.by_llm import LlmOptions

            told = engine.link_by_llm(LlmOptions(across=not within, most_documents=most))
            if session.as_json:
                from dowse.serve.wire.result import plain

                session.emit_json(plain(told))
            else:
                session.emit(f"{told.documents:,} documents, {told.edges:,} edges, {told.dropped:,} answers dropped")
            if told.left:
                session.note(f"{told.left:,} documents are left; run it again to go on")
            if told.note:
                session.note(f"dowse: {told.note}")
            return Exit.REMOTE if told.note and not told.documents else Exit.HITS
        done = engine.link(again=again)
    if session.as_json:
        session.emit_json({"documents": done.documents, "edges": done.edges})
    else:
        session.emit(f"{done.documents:,} documents linked, {done.edges:,} edges")
    return Exit.HITS
