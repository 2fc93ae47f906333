"""Commands that write the index: paths, targets or a model enter; a summary of the changes leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING, Any

import click

from dowse.cli.options import add, note_old, option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.errors import BadRequestError, NotFoundError
from dowse.serve.plain_text import clean_line, clean_path, plural
from dowse.serve.wire.result import Exit, plain, report_object

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.reports import IndexReport

IndexRun = Callable[..., "IndexReport"]  # over the changed paths; None: over everything


def _old_scrub(ctx: click.Context, param: click.Parameter, value: bool | None) -> bool | None:
    if value is not None:
        note_old(ctx, param, value, "--pseudonyms" if value else "--no-pseudonyms")
    return value


INDEX_OPTIONS = (
    option("--rev", metavar="REV", group="What", help="Index a branch, tag or commit, without a checkout."),
    option("--archives", is_flag=True, group="What", help="Also open zip and tar files inside folders."),
    option("--max-file-size", metavar="SIZE", group="What", help="Skip files larger than SIZE [default: 4MB]."),
    option("--pseudonyms/--no-pseudonyms", default=None, group="What", help="Replace names, e-mail addresses and "
           "phone numbers with pseudonyms. Stays on for this source until --no-pseudonyms."),
    option("--scrub/--no-scrub", default=None, hidden=True, callback=_old_scrub),
    option("--llm-summaries", is_flag=True, group="What", help="Add summaries by the language model."),
    option("--embedder", metavar="MODEL", group="Vectors",
           help="Embed with auto, none, a name, a folder, a hub id or URL#model [default: auto]."),
    option("--no-embed", is_flag=True, group="Vectors", help="Index words only; the next run computes the vectors."),
    option("--watch", is_flag=True, group="Run", help="Keep running and index every change, until ctrl-C."),
    option("--wait", is_flag=True, group="Run", help="Wait for another writer to finish, instead of failing."),
    option("--workers", type=click.IntRange(0, 64), metavar="N", group="Run",
           help="Read files in N worker processes; 0: in the main process [default: as needed]."),
    option("--what-masked", is_flag=True, group="Output",
           help="List every masked secret of the index by place and kind."),
    option("--why-skipped", is_flag=True, group="Output", help="List every skipped file with the reason."),
)  # fmt: skip


@click.command(cls=SessionCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@add(INDEX_OPTIONS)
def index(
    session: CommandSession,
    paths: tuple[Path, ...],
    embedder: str | None,
    max_file_size: str | None,
    watch: bool,
    **flags: Any,
) -> int:
    """Index files and folders, or update the index.

    \b
    dowse index .
    dowse index ~/code/app ~/runbooks --index ~/acme-index
    dowse index --no-embed .      # words now, vectors with the next run
    dowse index slack-export.zip 'docs/**/*.md'
    dowse index --rev v1.2 ~/code/app
    dowse index --watch .

    Reads only new and changed files. Without PATH, updates everything indexed before.
    """
    from dowse.cli.rich_output import progress
    from dowse.ingest.pipeline import IndexOptions
    from dowse.ingest.sources.requests import IndexRequest, resolve

    if watch and (flags["rev"] or session.as_json):
        raise BadRequestError("--watch cannot be combined with --rev or --json; remove one")
    session = session.with_config(embedder=embedder, max_file_bytes=max_file_size)
    resolve([IndexRequest(path, flags["rev"]) for path in paths], ())  # a wrong path must not leave an empty index
    with session.open_writer(create=bool(paths)) as engine:
        pseudonyms = flags["scrub"] if flags["pseudonyms"] is None else flags["pseudonyms"]

        def run(only: frozenset[str] | None, report: Any = None) -> IndexReport:
            """Index everything requested, or the changed part of it."""
            return engine.index(
                paths,
                rev=flags["rev"],
                archives=flags["archives"],
                pseudonyms=pseudonyms,
                embed=not flags["no_embed"],
                wait=flags["wait"] or only is not None,
                report=report,
                max_file_bytes=session.config.max_file_bytes,
                llm_summaries=flags["llm_summaries"],
                how=IndexOptions(
                    workers=flags["workers"],
                    max_workers=session.config.threads,
                    list_skipped=flags["why_skipped"],
                    only=only,
                ),
            )

        with progress(wanted=not session.quiet) as report:
            done = run(None, report)
        masked = _masked(engine) if flags["what_masked"] else []
        code = _finish(session, done, engine.path, [*_lines(done), *masked])
        if watch and not done.interrupted:
            _watch(session, engine, paths, run)
    return code


def _masked(engine: Engine) -> list[str]:
    from dowse.lookup.masked import masked_places

    return [f"{clean_path(each.place)}: masked {clean_line(each.kind)}" for each in masked_places(engine.reader())]


def _watch(session: CommandSession, engine: Engine, paths: Sequence[Path], run: IndexRun) -> None:
    """Index changes until ctrl-C; finished work is kept."""
    from dowse.ingest.sources.requests import IndexRequest
    from dowse.ingest.sources.watch import changes

    session.note("watching for changes; stop with ctrl-C")
    try:
        for change in changes([IndexRequest(path) for path in paths] or engine.asked(), Event(), session.note):
            try:
                done = run(change.paths)
            except NotFoundError as err:  # between two branches a folder may be gone for a moment
                session.note(f"dowse: {err}")
                continue
            if done.interrupted:
                break
            if any((done.added, done.changed, done.removed, done.embedded, done.problems)):
                session.emit(summary(done))
    except KeyboardInterrupt:
        pass  # the way to stop it
    session.note("stopped watching; the index keeps all finished changes")


@click.command("add", cls=SessionCommand)
@click.argument("file", metavar="[FILE]", type=click.File("rb"), default="-")
@option("--embedder", metavar="MODEL", help="Embed with auto, none, a name, a folder, a hub id or URL#model.")
@option("--no-embed", is_flag=True, help="Add words only; the next index run computes the vectors.")
def add_documents(session: CommandSession, file: IO[bytes], embedder: str | None, no_embed: bool) -> int:
    """Add documents that are not files, as JSON Lines.

    \b
    dowse add tickets.jsonl
    echo '{"id": "T-1", "title": "Login fails", "text": "..."}' | dowse add
    dowse remove T-1

    Reads standard input without FILE. A document replaces the one with the same id and source. Fields: id, text (or
    data in base64 with media_type), title, source, url, author, created_at, corpus_type, channel, service, parent,
    metadata. A bad line is reported, the others are added.
    """
    session = session.with_config(embedder=embedder)
    with session.open_writer(create=True) as engine:
        report = engine.add((line for line in file if line.strip()), embed=not no_embed)
    count = report.added + report.changed
    text = f"Added {plural(count, 'document')} ({plural(report.chunks, 'chunk')}) in {report.seconds:.1f} s: "
    text += f"{report.added:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged."
    session.answer(report_object(report), text)
    for problem in report.problems:
        click.echo(f"dowse: {clean_path(problem.path)}: {clean_line(problem.reason)}", err=True)
    return Exit.PARTIAL if report.problems else Exit.HITS


@click.command(cls=SessionCommand)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
def remove(session: CommandSession, targets: tuple[str, ...]) -> int:
    """Remove documents from the index.

    \b
    dowse remove docs/old.md
    dowse remove 'app/legacy/**'
    dowse remove 3f9c2ab7d1e04c55

    TARGET is a path, a glob of source/path, or a document's id. The files themselves stay. The next `dowse index`
    reads them again, unless .dowseignore names them.
    """
    with session.open_writer(create=False) as engine:
        count = engine.remove(targets)
    session.answer({"removed": count}, f"Removed {plural(count, 'document')}.")
    return Exit.HITS if count else Exit.NOTHING


@click.command(cls=SessionCommand)
def rebuild(session: CommandSession) -> int:
    """Rebuild search structures from the stored documents.

    \b
    dowse rebuild
    dowse rebuild --index ~/acme-index
    dowse rebuild && dowse doctor --verify

    Writes the word index and the vector files from the database, without reading or embedding files.
    """
    from dowse.cli.rich_output import progress

    with session.open_writer(create=False) as engine, progress(wanted=not session.quiet) as report:
        engine.rebuild(report=report)
        place = engine.path
    session.answer({"rebuilt": str(place)}, "Rebuilt the word index and the vector files.")
    session.note("Check them: dowse doctor --verify")
    return Exit.HITS


@click.command(cls=SessionCommand)
@click.argument("model")
def reembed(session: CommandSession, model: str) -> int:
    """Recompute all vectors with another model.

    \b
    dowse reembed all-MiniLM-L6-v2
    dowse reembed ./my-model-folder
    dowse reembed http://localhost:11434/v1#nomic-embed-text

    Queries use the old vectors until the new ones are complete. An interrupted run continues where it stopped.
    """
    from dowse.cli.rich_output import progress

    session = session.with_config(embedder=model)
    with session.open_writer(create=False) as engine, progress(wanted=not session.quiet) as report:
        done = engine.reembed(model, report=report)
        place = engine.path
    return _finish(session, done, place, [f"Embedded {plural(done.embedded, 'chunk')} with {model}."])


@click.command(cls=SessionCommand)
@option("--again", is_flag=True, help="Link all documents, not only the changed ones.")
@option("--llm", is_flag=True, help="Find further links with the configured language model.")
@option("--most", metavar="N", type=click.IntRange(1), help="Stop after N documents, with --llm [default: no limit].")
@option("--within", is_flag=True, help="Find links inside single documents only, with --llm.")
def link(session: CommandSession, again: bool, llm: bool, most: int | None, within: bool) -> int:
    """Rebuild the links between code, docs and conversations.

    \b
    dowse link                    link changed documents, by rules
    dowse link --again            link all documents
    dowse link --llm --most 50    link 50 documents with a language model

    `dowse index` links the files it reads; run this after an upgrade, or with --llm. --llm costs money: it sends the
    text of your documents to the endpoint in `llm_base_url`. An interrupted run continues where it stopped.
    """
    if not llm and (most is not None or within):
        raise BadRequestError("--most and --within need --llm; run: dowse link --llm --most 50")
    with session.open_writer(create=False) as engine:
        if llm:
            from dowse.ingest.links.by_llm import LlmOptions

            found = engine.link_by_llm(LlmOptions(across=not within, most_documents=most))
            text = f"Linked {found.documents:,} documents: {found.edges:,} links, {found.dropped:,} answers dropped."
            session.answer(plain(found), text)
            if found.left:
                session.note(f"{found.left:,} documents left; run the same command again to continue")
            if found.note:
                session.note(f"dowse: {found.note}")
            return Exit.REMOTE if found.note and not found.documents else Exit.HITS
        done = engine.link(again=again)
    session.answer(
        {"documents": done.documents, "edges": done.edges},
        f"Linked {done.documents:,} documents: {done.edges:,} links.",
    )
    return Exit.HITS


def summary(report: IndexReport) -> str:
    """Format `Indexed 15 files (60 chunks) in 1.8 s: 12 new, 3 changed, 1 removed, 4,210 unchanged.`"""
    read = f"{plural(report.added + report.changed, 'file')} ({plural(report.chunks, 'chunk')})"
    unchanged = f", {report.unchanged:,} unchanged" if report.unchanged else ""
    changes = f"{report.added:,} new, {report.changed:,} changed, {report.removed:,} removed{unchanged}"
    return f"Indexed {read} in {report.seconds:.1f} s: {changes}."


def _finish(session: CommandSession, report: IndexReport, place: Path, lines: Sequence[str]) -> int:
    session.answer({"index": str(place)} | report_object(report), *lines)
    for problem in report.problems:  # even when quiet, since they are errors
        click.echo(f"dowse: {clean_path(problem.path)}: {clean_line(problem.reason)}", err=True)
    for note in filter(None, (*report.notes, report.embedding_note)):
        session.note(f"dowse: {clean_line(note)}")
    if report.interrupted:
        session.note("interrupted; the index keeps all finished files. Run the same command again to continue")
        return Exit.INTERRUPTED
    if not any((report.added, report.changed, report.removed, report.unchanged, report.embedded)):
        session.note("no files to index there; name another folder, or a file")
    elif report.pending:
        session.note(f"{plural(report.pending, 'chunk')} without a vector; compute them with: {session.embed_command}")
    else:
        session.note('Try: dowse "where do we retry payments"')
    if report.problems:
        return Exit.PARTIAL
    return Exit.REMOTE if report.embedding_note and session.remote_model else Exit.HITS


def _lines(report: IndexReport) -> list[str]:
    lines = [summary(report)]
    if report.embedded:
        lines.append(f"Embedded {plural(report.embedded, 'chunk')}.")
    if report.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.skipped)
        lines.append(f"Skipped {plural(sum(count for _, count in report.skipped), 'path')}: {reasons}.")
    if report.masked:
        lines.append(f"Masked {plural(report.masked, 'secret')}.")
    if report.scrubbed:
        kinds = ", ".join(plural(count, kind) for kind, count in report.scrubbed)
        lines.append(f"Replaced with pseudonyms: {kinds}.")
    return lines + [f"{clean_path(each.path)}: {each.reason}" for each in report.left_out]
