"""`dowse trust`: folders whose index and project file may name servers, models and other folders."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from dowse import trust as record
from dowse.cli.options import GroupedCommand, option
from dowse.errors import BadRequestError
from dowse.serve.plain_text import clean_path
from dowse.serve.wire.result import Exit


@click.command(cls=GroupedCommand)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@option("--list", "listed", is_flag=True, help="List the trusted folders, servers and models.")
@option("--remove", is_flag=True, help="Remove these folders from the trusted ones.")
@option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def trust(paths: tuple[Path, ...], listed: bool, remove: bool, as_json: bool) -> int:
    """Allow a folder's settings to use servers, models and other folders.

    A cloned repository can contain an index or a dowse.toml. Dowse refuses the servers, models and outside folders in
    them until you trust the folder or type the value yourself. DOWSE_TRUST=PATH:PATH trusts folders for one command.

    \b
    dowse trust ~/work/app
    dowse trust --list
    dowse trust --remove ~/work/app
    """
    if not paths and not listed:
        raise BadRequestError("missing folder; type for example: dowse trust .")
    for path in paths:
        if remove:
            if not record.forget(path):
                raise BadRequestError(f"{path} is not trusted; run `dowse trust --list`")
        elif not os.path.lexists(path):
            raise BadRequestError(f"no such file or folder: {path}")
        else:
            record.allow(path)
    rows = record.record()
    if as_json:
        click.echo(msgspec.json.encode([{"path": path, "allowed": name} for path, name in rows]))
    elif listed:
        for owner, name in rows or [("No folder is trusted.", record.ANYTHING)]:
            click.echo(clean_path(owner if name == record.ANYTHING else f"{owner}: {name}"))
    else:
        for path in paths:
            click.echo(f"{'Removed' if remove else 'Trusted'} {clean_path(os.path.realpath(path))}.")
    return Exit.HITS
