"""Paths, targets or a model's name enter; the index changes, and a summary of what was done leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.session import Session, shared_options
from dowse.errors import BadRequestError
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.engine import Engine
    from dowse.ports import Reporter
    from dowse.reports import IndexReport


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--embedder", metavar="MODEL", help="auto, none, a name, a folder, a hub id or URL#model.")
@click.option("--no-embed", is_flag=True, help="Index words alone; the next run makes the vectors.")
@click.option("--wait", is_flag=True, help="Wait for another writer to finish, instead of failing.")
@click.option("--max-file-size", metavar="SIZE", help="Skip larger files: 500KB, 4MB.  [default: 4MB]")
@click.option("--rev", metavar="REV", help="A repository at a branch, tag or commit, without a checkout.")
@click.option("--archives", is_flag=True, help="Open zip and tar files in folders, too; one named as PATH always is.")
@click.option("--why-skipped", is_flag=True, help="List every file that was left out, with the reason.")
@click.option("--workers", type=click.IntRange(0, 64), help="Processes that read; 0: none.  [default: as needed]")
@click.option("--scrub/--no-scrub", default=None, help="Pseudonyms for people, e-mail and phone; kept until told off.")
@click.option("--llm-summaries", is_flag=True, help="Sections and documents summed up by the language model.")
@click.option("--watch", is_flag=True, help="Stay, and follow every change until ctrl-C.")
@shared_options
def index(
    session: Session,
    paths: tuple[Path, ...],
    embedder: str | None,
    no_embed: bool,
    wait: bool,
    max_file_size: str | None,
    watch: bool,
    **how: Any,
) -> int:
    """Read files and folders into the index.

    \b
    dowse index .
    dowse index ~/code/app ~/runbooks --index ~/acme-index
    dowse index --no-embed .      # words at once, vectors with the next run
    dowse index slack-export.zip 'docs/**/*.md'
    dowse index --rev v1.2 ~/code/app
    dowse index --watch .

    Only what changed is read again. Without PATH, all that was asked for before is brought up to date.
    """
    from dowse.cli import rich_output as terminal_rich

    if watch and (how["rev"] or session.as_json):
        raise BadRequestError(
            "--watch goes with neither --rev nor --json: a commit stays as it is, and so does an object"
        )
    session = session.with_config(embedder=embedder, max_file_bytes=max_file_size)
    with session.open_writer(create=bool(paths)) as engine:
        run = _runner(session, engine, paths, embed=not no_embed, wait=wait, **how)
        with terminal_rich.progress(wanted=not session.quiet) as report:
            done = run(None, report)
        code = _finish(session, done, engine.path, _lines(done))
        if watch and not done.interrupted:
            from dowse.cli.manage.watch import watch as follow
            from dowse.ingest.sources.requests import Asked

            asked = [Asked(path) for path in paths] or engine.asked()
            follow(session, asked, run, lambda report: session.emit(summary(report)))
    return code


def _runner(
    session: Session, engine: Engine, paths: Sequence[Path], *, embed: bool, wait: bool, rev: str | None,
    archives: bool, why_skipped: bool, workers: int | None, scrub: bool | None, llm_summaries: bool,
) -> Callable[..., IndexReport]:  # fmt: skip
    """One run over all that was asked for, or over what changed of it."""
    from dowse.ingest.pipeline import IndexOptions

    how = IndexOptions(workers=workers, max_workers=session.config.threads, list_skipped=why_skipped)

    def run(only: frozenset[str] | None, report: Reporter | None = None) -> IndexReport:
        return engine.index(
            paths,
            rev=rev,
            archives=archives,
            scrub=scrub,
            embed=embed,
            wait=wait or only is not None,
            report=report,
            max_file_bytes=session.config.max_file_bytes,
            llm_summaries=llm_summaries,
            how=replace(how, only=only),
        )

    return run


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@shared_options
def remove(session: Session, targets: tuple[str, ...]) -> int:
    """Remove documents from the index.

    \b
    dowse remove docs/old.md
    dowse remove 'app/legacy/**'
    dowse remove 3f9c2ab7d1e04c55

    A TARGET is a path, a glob of source/path, or a document's id. The files themselves are not touched; what is
    still there is read again by the next `dowse index`, unless .dowseignore names it.
    """
    from dowse.serve.plain_text import plural

    with session.open_writer(create=False) as engine:
        count = engine.remove(targets)
    if session.as_json:
        session.emit_json({"removed": count})
    else:
        session.emit(f"removed {plural(count, 'document')}")
    return Exit.HITS if count else Exit.NOTHING


@click.command()
@shared_options
def rebuild(session: Session) -> int:
    """Make the derived parts of the index anew.

    \b
    dowse rebuild
    dowse rebuild --index ~/acme-index
    dowse rebuild && dowse doctor --verify

    Word indexes and vector files are written again from the database; no file is read and nothing is embedded.
    """
    from dowse.cli import rich_output as terminal_rich

    with (
        session.open_writer(create=False) as engine,
        terminal_rich.progress(wanted=not session.quiet) as report,
    ):
        engine.rebuild(report=report)
        place = engine.path
    if session.as_json:
        session.emit_json({"rebuilt": str(place)})
    else:
        session.emit("rebuilt the words and vectors of the index")
        session.note("check it with: dowse doctor --verify")
    return Exit.HITS


@click.command()
@click.argument("model")
@shared_options
def reembed(session: Session, model: str) -> int:
    """Make all vectors anew with another model.

    \b
    dowse reembed all-MiniLM-L6-v2
    dowse reembed ./my-model-folder
    dowse reembed http://localhost:11434/v1#nomic-embed-text

    The old vectors answer until the new ones are complete; interrupted, the same command goes on.
    """
    from dowse.cli import rich_output as terminal_rich
    from dowse.serve.plain_text import plural

    session = session.with_config(embedder=model)
    with (
        session.open_writer(create=False) as engine,
        terminal_rich.progress(wanted=not session.quiet) as report,
    ):
        done = engine.reembed(model, report=report)
        place = engine.path
    return _finish(session, done, place, (f"{plural(done.embedded, 'vector')} made with {model}",))


def summary(report: IndexReport) -> str:
    """`+12 ~3 −1, 4,210 unchanged in 1.8 s`."""
    changes = f"+{report.added:,} ~{report.changed:,} −{report.removed:,}"
    return f"{changes}, {report.unchanged:,} unchanged in {report.seconds:.1f} s"


def _finish(session: Session, report: IndexReport, place: Path, lines: Sequence[str]) -> int:
    if session.as_json:
        from dowse.serve.wire.result import report_object

        session.emit_json({"index": str(place)} | report_object(report))
    else:
        for line in lines:
            session.emit(line)
    _notes(session, report)
    if report.interrupted:
        return Exit.INTERRUPTED
    if report.problems:
        return Exit.PARTIAL
    return Exit.REMOTE if report.embedding_note and session.remote_model else Exit.HITS


def _lines(report: IndexReport) -> list[str]:
    from dowse.serve.plain_text import clean_path, plural

    lines = [summary(report)]
    if report.chunks or report.embedded:
        lines.append(f"{plural(report.chunks, 'chunk')} written, {plural(report.embedded, 'vector')} made")
    if report.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.skipped)
        total = sum(count for _, count in report.skipped)
        lines.append(f"skipped {total:,}: {reasons}")
    if report.masked:
        lines.append(f"masked {plural(report.masked, 'secret')}")
    if report.scrubbed:
        lines.append("scrubbed " + ", ".join(plural(count, kind) for kind, count in report.scrubbed))
    lines += [f"{clean_path(each.path)}: {each.reason}" for each in report.left_out]
    return lines


def _notes(session: Session, report: IndexReport) -> None:
    """Problems even when quiet: they are errors. The rest, and the next command, are notes."""
    from dowse.serve.plain_text import clean_line, clean_path, plural

    for problem in report.problems:
        click.echo(f"dowse: {clean_path(problem.path)}: {clean_line(problem.reason)}", err=True)
    for note in filter(None, (*report.notes, report.embedding_note)):
        session.note(f"dowse: {clean_line(note)}")
    if report.interrupted:
        session.note("interrupted; what is done is kept. Go on with the same command")
    elif not any((report.added, report.changed, report.removed, report.unchanged, report.embedded)):
        session.note("no file was found there that can be indexed; name another folder, or a file itself")
    elif report.pending:
        session.note(f"{plural(report.pending, 'chunk')} still without a vector; make them with: dowse index")
    else:
        session.note('now search: dowse "words or a question"')
