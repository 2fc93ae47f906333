"""`dowse mcp`: an agent's requests enter on stdin, answers from the index leave on stdout, and notes on stderr."""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session, shared_options
from dowse.errors import MissingExtraError
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.serve.backend import Backend


@click.command()
@click.option("--allow-write", is_flag=True, help="Offer `reindex`, too; else nothing can be changed.")
@shared_options
def mcp(session: Session, allow_write: bool) -> int:
    """Serve the index to agents over stdio, as an MCP server.

    \b
    claude mcp add dowse -- dowse mcp
    dowse mcp --index ~/work/.dowse

    An agent starts this itself; docs/mcp.md has a line for each. The index need not be there yet.
    """
    gc.disable()  # half a million objects of the SDK are made and stay: looking for garbage among them takes a fifth
    try:
        import anyio

        from dowse.serve.mcp.server import Opened, serve_stdio
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("dowse"):
            raise
        raise MissingExtraError(f"`dowse mcp` needs {err.name}; run: pip install 'dowse[mcp]'") from err
    finally:
        gc.enable()
    gc.freeze()

    if sys.stdin.isatty():
        session.note("waiting for an agent on stdin; docs/mcp.md says how to introduce it; ctrl-C ends")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that reads stdin cannot be called off, only ended
    backend = Opened(lambda: _opened(session, allow_write))
    try:
        anyio.run(lambda: serve_stdio(backend, allow_write=allow_write))
    finally:
        backend.close()
    return Exit.HITS


def _opened(session: Session, allow_write: bool) -> Backend:
    from dowse.serve.backend import Access, Backend

    access = Access(write=allow_write, absolute_paths=True)  # who starts it can read the disk anyway
    return Backend.open(session.existing_index(), session.config, access)
