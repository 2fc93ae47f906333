"""`dowse serve`: where to listen and whom to trust enter; a server runs until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dowse.cli.session import Session, shared_options
from dowse.errors import MissingExtraError
from dowse.serve.wire.result import Exit

EXTRA = ("fastapi", "jinja2", "uvicorn", "prometheus_client")
_HINT = "the server needs more packages ({missing}); install them with: pip install 'dowse[server]'"


@click.command()
@click.option("--host", default="127.0.0.1", metavar="NAME", help="Where to listen.  [default: 127.0.0.1]")
@click.option(
    "--port", default=8765, type=click.IntRange(0, 65535), metavar="N", help="0 takes a free one.  [default: 8765]"
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The token that clients must send; else DOWSE_TOKEN.",
)
@click.option("--allow-write", is_flag=True, help="Let clients start index jobs and keep judgments.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name that clients may call this server by.")
@click.option("--cors", multiple=True, metavar="ORIGIN", help="Let pages of this origin ask; else none but ours.")
@click.option("--absolute-paths", is_flag=True, help="Tell clients where files lie on this machine.")
@click.option(
    "--editor",
    default=None,
    metavar="LINK",
    help="With --absolute-paths: how the page opens a line in an editor.  [default: vscode://file{path}:{line}]",
)
@click.option("--workers", default=1, type=click.IntRange(1, 64), metavar="N", help="Processes.  [default: 1]")
@click.option(
    "--concurrency", default=4, type=click.IntRange(1, 256), metavar="N", help="Requests at work in each.  [default: 4]"
)
@click.option("--queue", default=64, type=click.IntRange(0), metavar="N", help="Requests that may wait.  [default: 64]")
@click.option("--per-client", default=48, type=click.IntRange(1), metavar="N", help="Of one address.  [default: 48]")
@click.option(
    "--timeout", default=30.0, type=click.FloatRange(0.1), metavar="SECONDS", help="For an answer.  [default: 30]"
)
@shared_options
def serve(session: Session, **flags: Any) -> int:
    """Answer over HTTP, with a page for people.

    \b
    dowse serve
    dowse serve --port 9000 --allow-write
    dowse serve --host 0.0.0.0 --token-file token --allow-host search.example.com

    Reachable from this machine alone unless --host says otherwise, which needs a token. Ends with ctrl-C or SIGTERM,
    after what is under way.
    """
    _check_extra()
    from dowse.serve.http.options import checked

    options = checked(_options(session, flags))
    place = session.existing_index()
    with session.open_reader(mend=True):  # what a crashed writer left is mended before we only read
        pass
    from dowse.serve.http.server import Service, listen  # a second of imports: after all that can be wrong without them
    from dowse.serve.http.server import serve as run

    with listen(options) as listening:
        port = listening.getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{shown}:{port}/"

        def ready() -> None:
            if session.as_json:
                session.emit_json({"url": address, "index": str(place)})
            session.note(f"dowse: serving at {address} (ctrl-C ends it)")

        run(Service(place, session.config, options, session.verbose), listening, ready)
    return Exit.HITS


def _options(session: Session, flags: dict[str, Any]) -> Any:
    from dowse.serve.backend import Access
    from dowse.serve.http.options import EDITOR, Limits, ServerOptions, token_from

    return ServerOptions(
        host=flags["host"],
        port=flags["port"],
        token=token_from(flags["token_file"], session.env),
        access=Access(write=flags["allow_write"], absolute_paths=flags["absolute_paths"]),
        allow_hosts=tuple(name.lower() for name in flags["allow_host"]),
        editor=EDITOR if flags["editor"] is None else flags["editor"],
        cors=tuple(origin.rstrip("/").lower() for origin in flags["cors"]),
        limits=Limits(
            workers=flags["workers"],
            concurrency=flags["concurrency"],
            queue=flags["queue"],
            per_client=flags["per_client"],
            request_s=flags["timeout"],
        ),
    )


def _check_extra() -> None:
    from importlib.util import find_spec

    if missing := [name for name in EXTRA if find_spec(name) is None]:
        raise MissingExtraError(_HINT.format(missing=", ".join(missing)))
