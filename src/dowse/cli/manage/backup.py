"""Commands `dowse backup` and `dowse restore`: one portable, checked file of an index.

Separate from the other commands: neither opens an engine.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from dowse.cli.session import CommandSession, SessionCommand
from dowse.config import new_index
from dowse.serve.plain_text import clean_path, plural
from dowse.serve.wire.result import Exit


@click.command(cls=SessionCommand)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(session: CommandSession, file: Path) -> int:
    """Write the index to one checked file.

    \b
    dowse backup ~/backups/app.dowse
    dowse restore ~/backups/app.dowse --index /srv/app/.dowse

    Works while another process indexes: the file contains what was stored when the command began. Every row is checked
    first, so a damaged index does not replace a good backup. An existing backup of this name is replaced.
    """
    from dowse.store.backup import back_up

    manifest = back_up(session.existing_index(), file)
    text = f"{plural(manifest.documents, 'document')}, {plural(manifest.chunks, 'chunk')}"
    session.answer(
        {"path": str(file), **msgspec.to_builtins(manifest)},
        f"Backed up {text}, {plural(manifest.vectors, 'vector')} to {clean_path(str(file))}.",
    )
    return Exit.HITS


@click.command(cls=SessionCommand)
@click.argument("file", type=click.Path(path_type=Path))
def restore(session: CommandSession, file: Path) -> int:
    """Make an index from a backup.

    \b
    dowse restore app.dowse
    dowse restore app.dowse --index /srv/app/.dowse

    Writes to .dowse in this folder, or to --index. An existing index is not replaced. Nothing is read or embedded
    again, and `dowse index` continues with the files that changed.
    """
    from dowse.store.backup import restore as restored

    place = session.config.index or new_index(session.cwd)
    manifest = restored(file, place)
    text = f"{plural(manifest.documents, 'document')}, {plural(manifest.chunks, 'chunk')}"
    session.answer(
        {"index": str(place), **msgspec.to_builtins(manifest)},
        f"Restored {text}, {plural(manifest.vectors, 'vector')} to {clean_path(str(place))}.",
    )
    return Exit.HITS
