"""`dowse index --watch`: an index that is up to date enters, and stays so until ctrl-C; a line a change leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING

from dowse.errors import NotFoundError

if TYPE_CHECKING:
    from dowse.cli.session import Session
    from dowse.ingest.sources.requests import Asked
    from dowse.reports import IndexReport

Run = Callable[[frozenset[str] | None], "IndexReport"]  # of what changed; None: of everything
Tell = Callable[["IndexReport"], None]


def watch(session: Session, asked: Sequence[Asked], run: Run, tell: Tell) -> None:
    """Returns at ctrl-C, with everything that was done kept."""
    from dowse.ingest.sources.watch import changes

    session.note("watching for changes; stop with ctrl-C")
    try:
        for change in changes(asked, Event(), session.note):
            try:
                done = run(change.paths)
            except NotFoundError as err:  # between two branches a folder may be gone for a moment
                session.note(f"dowse: {err}")
                continue
            if done.interrupted:
                break
            if any((done.added, done.changed, done.removed, done.embedded, done.problems)):
                tell(done)
    except KeyboardInterrupt:
        pass  # the way to stop it
    session.note("stopped watching; what is done is kept")
