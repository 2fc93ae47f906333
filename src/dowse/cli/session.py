"""The flags that every command has enter; a Session leaves, which opens the index and prints as asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import OPTIONS, SHARED
from dowse.config import Config, find_index, new_index
from dowse.errors import NoIndexError

if TYPE_CHECKING:
    from dowse.engine import Engine

REMOTE = ("http://", "https://")

Command = Callable[..., int | None]


@dataclass(frozen=True)
class Session:
    """One run of the command line. Data goes to stdout; notes, progress and errors go to stderr."""

    config: Config
    cwd: Path
    env: Mapping[str, str]
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_colour: bool = False

    def emit(self, text: str) -> None:
        click.echo(text, color=True)  # what is printed has no escapes but those we put there

    def emit_json(self, value: object) -> None:
        from dowse.serve.wire import result as wire

        data = wire.encode(value)
        click.echo(wire.indented(data) if sys.stdout.isatty() else data)

    def note(self, text: str) -> None:
        if not self.quiet:
            click.echo(text, err=True, color=True)

    def detail(self, text: str) -> None:
        if self.verbose:
            click.echo(text, err=True, color=True)

    def with_config(self, **flags: str | None) -> Session:
        """The same session with settings given as flags; None leaves a setting as it is."""
        given = {name: text for name, text in flags.items() if text is not None}
        if self.config.origin("index") == "flag":
            given["index"] = str(self.config.index)
        return replace(self, config=Config.load(self.cwd, self.env, given)) if given else self

    def existing_index(self) -> Path:
        """Where the index is, or an error with the command that makes one."""
        place = self.config.index or find_index(self.cwd)
        if place is None:
            raise NoIndexError(f"no index in {self.cwd} or above it; make one with: dowse index .")
        return place

    def open_reader(self, *, mend: bool = True) -> Engine:
        """To ask. What a crashed writer left is mended on the way, unless the folder cannot be written to."""
        place = self.existing_index()
        return self._open(place, read_only=not mend or not os.access(place, os.W_OK), create=False)

    def open_writer(self, *, create: bool) -> Engine:
        if create:
            place = self.config.index or find_index(self.cwd) or new_index(self.cwd)
            return self._open(place, read_only=False, create=True)
        return self._open(self.existing_index(), read_only=False, create=False)

    def _open(self, place: Path, *, read_only: bool, create: bool) -> Engine:
        import dowse

        return dowse.open(place, read_only=read_only, create=create, config=self.config, embedder=self.config.embedder)

    @property
    def remote_model(self) -> bool:
        """Whether vectors come from a server, so that their absence is a remote failure."""
        return self.config.embedder.startswith(REMOTE)

    @property
    def pretty(self) -> bool:
        """Whether a person reads stdout."""
        from dowse.serve.plain_text import forced

        return sys.stdout.isatty() or forced(self.env)


def shared_options(command: Command) -> Command:
    """Give a click command the shared flags; the function is called with a Session first."""

    @wraps(command)
    def run(**params: Any) -> int | None:
        own = {name: params.pop(name) for name in SHARED}
        return command(_session(_inherited(own)), **params)

    decorated: Command = run
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def _inherited(own: Mapping[str, Any]) -> dict[str, Any]:
    """A shared flag may stand before the command's name as well as behind it."""
    flags = dict(own)
    ctx = click.get_current_context().parent
    while ctx is not None:
        flags = {name: value or ctx.params.get(name) for name, value in flags.items()}
        ctx = ctx.parent
    return flags


def _session(flags: Mapping[str, Any]) -> Session:
    cwd, env = Path.cwd(), os.environ
    config = Config.load(cwd, env, {"index": flags["index"]} if flags["index"] else None)
    return Session(
        config,
        cwd,
        env,
        as_json=bool(flags["as_json"]),
        quiet=bool(flags["quiet"]),
        verbose=bool(flags["verbose"]),
        no_colour=bool(flags["no_colour"]),
    )
