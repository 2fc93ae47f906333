"""CommandSession of one command: shared flags and settings enter; an open index, output and notes leave."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dowse.cli.options import NOTES, SHARED_OPTIONS, GroupedCommand
from dowse.config import Config, find_index, new_index
from dowse.errors import NoIndexError

if TYPE_CHECKING:
    from dowse.engine import Engine

Command = Callable[..., int | None]


class CommandSession(msgspec.Struct, frozen=True):
    """One run of a command. Data goes to stdout; notes, progress and errors go to stderr."""

    config: Config
    cwd: Path
    env: Mapping[str, str]
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_colour: bool = False

    def emit(self, *lines: str) -> None:
        for line in lines:
            click.echo(line, color=True)  # all indexed text is cleaned before, so that only our own escapes are left

    def emit_json(self, value: object) -> None:
        from dowse.serve.wire import result as wire

        data = wire.encode(value)
        click.echo(msgspec.json.format(data, indent=2) if sys.stdout.isatty() else data)

    def answer(self, row: object, *lines: str) -> None:
        """Print an object if JSON was asked for, else these lines."""
        if self.as_json:
            self.emit_json(row)
        else:
            self.emit(*lines)

    def note(self, text: str) -> None:
        if not self.quiet:
            click.echo(text, err=True, color=True)

    def detail(self, text: str) -> None:
        if self.verbose:
            click.echo(text, err=True, color=True)

    def with_config(self, **flags: str | None) -> CommandSession:
        """Return the session with settings given as flags; None leaves a setting as it is."""
        given = {name: text for name, text in flags.items() if text is not None}
        if self.config.origin("index") == "flag":
            given["index"] = str(self.config.index)
        return msgspec.structs.replace(self, config=Config.load(self.cwd, self.env, given)) if given else self

    def existing_index(self) -> Path:
        """Return the folder of the index, or raise an error with the command that makes one."""
        place = self.config.index or find_index(self.cwd)
        if place is None:
            raise NoIndexError(f"no index in {self.cwd} or above it; make one with: dowse index .")
        return place

    def open_reader(self, *, repair: bool = True) -> Engine:
        """Open the index for queries, and repair the leftovers of a crashed writer if the folder is writable."""
        place = self.existing_index()
        return self._open(place, read_only=not repair or not os.access(place, os.W_OK), create=False)

    def open_writer(self, *, create: bool) -> Engine:
        known = self.config.index or find_index(self.cwd)
        place = known or new_index(self.cwd) if create else self.existing_index()
        return self._open(place, read_only=False, create=create)

    def _open(self, place: Path, *, read_only: bool, create: bool) -> Engine:
        import dowse

        return dowse.open(place, read_only=read_only, create=create, config=self.config, embedder=self.config.embedder)

    @property
    def remote_model(self) -> bool:
        """Whether a server makes the vectors, so that missing ones are a remote failure."""
        from dowse.trust import parse_server

        return parse_server(self.config.embedder) is not None

    @property
    def embed_command(self) -> str:
        """The command that computes missing vectors; with the model turned off, it has to turn one on."""
        return "dowse index --embedder auto" if self.config.embedder == "none" else "dowse index"

    @property
    def pretty(self) -> bool:
        """Whether a person reads stdout."""
        from dowse.serve.plain_text import forced

        return sys.stdout.isatty() or forced(self.env)


class SessionCommand(GroupedCommand):
    """A command with the shared flags, whose function receives a CommandSession first."""

    def __init__(self, name: str, callback: Command, params: Sequence[click.Parameter] = (), **settings: Any) -> None:
        @wraps(callback)
        def run(**given: Any) -> int | None:
            session = _session({str(each.name): given.pop(str(each.name)) for each in SHARED_OPTIONS})
            for note in click.get_current_context().meta.pop(NOTES, ()):
                session.note(f"dowse: {note}")
            return callback(session, **given)

        super().__init__(name, callback=run, params=[*params, *SHARED_OPTIONS], **settings)


class SessionGroup(SessionCommand, click.Group):
    """A group of commands with the shared flags."""

    command_class = SessionCommand

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _session(flags: dict[str, Any]) -> CommandSession:
    ctx = click.get_current_context().parent
    while ctx is not None:  # a shared flag may also precede the command's name
        flags = {name: value or ctx.params.get(name) for name, value in flags.items()}
        ctx = ctx.parent
    index = flags.pop("index")
    cwd, env = Path.cwd(), os.environ
    config = Config.load(cwd, env, {"index": index} if index else None)
    session = CommandSession(config, cwd, env, **{name: bool(value) for name, value in flags.items()})
    for text in config.notes:
        session.note(text)
    return session
