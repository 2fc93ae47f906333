"""`dowse serve` and `dowse mcp`: an address and access rules enter; a server runs until it is stopped."""

from __future__ import annotations

import gc
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import add, option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.errors import MissingExtraError
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

EXTRA = ("starlette", "jinja2", "uvicorn", "prometheus_client")
_HINT = "the server needs more packages ({missing}); run in a checkout: pip install '.[server]'"

SERVE_OPTIONS = (
    option("--host", default="127.0.0.1", metavar="NAME", help="Listen on this address [default: 127.0.0.1]."),
    option("--port", default=8765, type=click.IntRange(0, 65535), metavar="N",
           help="Listen on this port; 0 picks a free one [default: 8765]."),
    option("--token-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", group="Access",
           help="Require the token in FILE from clients [default: DOWSE_TOKEN]."),
    option("--allow-write", is_flag=True, group="Access", help="Allow clients to index files and store judgments."),
    option("--allow-host", multiple=True, metavar="NAME", group="Access",
           help="Accept requests for this host name; can be repeated."),
    option("--cors", multiple=True, metavar="ORIGIN", group="Access",
           help="Allow pages of this origin to send requests; can be repeated [default: none]."),
    option("--absolute-paths", is_flag=True, group="Access", help="Include absolute file paths in responses."),
    option("--editor", default=None, metavar="LINK", group="Access", help="Open a line from the page with this link, "
           "with --absolute-paths [default: vscode://file{path}:{line}]."),
    option("--workers", default=1, type=click.IntRange(1, 64), metavar="N", group="Limits",
           help="Run N processes [default: 1]."),
    option("--concurrency", default=4, type=click.IntRange(1, 256), metavar="N", group="Limits",
           help="Handle N requests at a time in each process [default: 4]."),
    option("--queue", default=64, type=click.IntRange(0), metavar="N", group="Limits",
           help="Queue up to N requests [default: 64]."),
    option("--per-client", default=48, type=click.IntRange(1), metavar="N", group="Limits",
           help="Accept up to N requests at a time from one address [default: 48]."),
    option("--timeout", default=30.0, type=click.FloatRange(0.1), metavar="SECONDS", group="Limits",
           help="Fail a request after SECONDS [default: 30]."),
)  # fmt: skip


@click.command(cls=SessionCommand)
@add(SERVE_OPTIONS)
def serve(session: CommandSession, **flags: Any) -> int:
    """Serve the HTTP API and the web page.

    \b
    dowse serve
    dowse serve --port 9000 --allow-write
    dowse serve --host 0.0.0.0 --token-file token --allow-host search.example.com

    By default it listens on localhost only and is read-only. Another --host needs a token. ctrl-C or SIGTERM stops
    it after the running requests.
    """
    if missing := [name for name in EXTRA if find_spec(name) is None]:
        raise MissingExtraError(_HINT.format(missing=", ".join(missing)))
    from dowse.serve.http.options import checked

    options = checked(_options(session, flags))
    place = session.existing_index()
    with session.open_reader():  # repairs the leftovers of a crashed writer: the server itself only reads
        pass
    from dowse.serve.http.server import ServerSetup, listen  # a second of imports: check all else first
    from dowse.serve.http.server import serve as run

    with listen(options) as listening:
        port = listening.getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{shown}:{port}/"

        def ready() -> None:
            if session.as_json:
                session.emit_json({"url": address, "index": str(place)})
            session.note(f"dowse: serving at {address} (stop with ctrl-C)")

        run(ServerSetup(place, session.config, options, session.verbose), listening, ready)
    return Exit.HITS


def _options(session: CommandSession, flags: dict[str, Any]) -> Any:
    from dowse.serve.backend import Access
    from dowse.serve.http.options import EDITOR, ServerLimits, ServerOptions, token_from

    return ServerOptions(
        host=flags["host"],
        port=flags["port"],
        token=token_from(flags["token_file"], session.env),
        access=Access(write=flags["allow_write"], absolute_paths=flags["absolute_paths"]),
        allow_hosts=tuple(name.lower() for name in flags["allow_host"]),
        editor=EDITOR if flags["editor"] is None else flags["editor"],
        cors=tuple(origin.rstrip("/").lower() for origin in flags["cors"]),
        limits=ServerLimits(
            request_s=flags["timeout"],
            **{name: flags[name] for name in ("workers", "concurrency", "queue", "per_client")},
        ),
    )


@click.command(cls=SessionCommand)
@option("--allow-write", is_flag=True, help="Offer the tool `reindex`; without it the server is read-only.")
def mcp(session: CommandSession, allow_write: bool) -> int:
    """Serve the index to agents over stdio, as an MCP server.

    \b
    claude mcp add dowse -- dowse mcp
    dowse mcp --index ~/work/.dowse

    Agents start this command themselves; docs/mcp.md has the setup for each. You can create the index later.
    """
    gc.disable()  # the SDK makes half a million lasting objects: collecting among them takes a fifth of the start
    try:
        import anyio

        from dowse.serve.mcp.server import LazyBackend, serve_stdio
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("dowse"):
            raise
        raise MissingExtraError(f"`dowse mcp` needs {err.name}; run in a checkout: pip install '.[mcp]'") from err
    finally:
        gc.enable()
    gc.freeze()

    if sys.stdin.isatty():
        session.note("waiting for an agent on stdin; see docs/mcp.md for the setup; stop with ctrl-C")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that reads stdin cannot be cancelled, only killed
    backend = LazyBackend(lambda: _opened(session, allow_write))
    try:
        anyio.run(lambda: serve_stdio(backend, allow_write=allow_write))
    finally:
        backend.close()
    return Exit.HITS


def _opened(session: CommandSession, allow_write: bool) -> Backend:
    from dowse.serve.backend import Access, Backend

    access = Access(write=allow_write, absolute_paths=True)  # its user can read the disk anyway
    return Backend.open(session.existing_index(), session.config, access)
