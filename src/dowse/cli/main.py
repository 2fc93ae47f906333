"""Entry point of the command line: arguments enter, the command runs, an exit code leaves."""

from __future__ import annotations

import io
import os
import sys
from signal import SIGINT, SIGPIPE
from typing import Any

import click

import dowse
from dowse.cli.help import COMMANDS, page
from dowse.cli.options import BARE_WORD, JSON_ASKED, SHARED_OPTIONS
from dowse.errors import DowseError

_FLAGS = frozenset(("--json", "-q", "--quiet", "-v", "--verbose", "--no-color"))
_ASIDE = frozenset(("-h", "--help", "--version"))


class LazyGroup(click.Group):
    """Group that imports a command's module only when it runs, and searches for any other first word."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from pkgutil import resolve_name

        found = next((place for name, place, _ in COMMANDS if name == cmd_name), None)
        return resolve_name(f"dowse.cli.{found}") if found else None

    def get_help(self, ctx: click.Context) -> str:
        return page()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = _after_shared_flags(args)
        if not args:
            args = ["--help"]
        elif at < len(args) and args[at] not in _ASIDE and args[at] not in self.list_commands(ctx):
            ctx.meta[BARE_WORD] = args[at]
            args = [*args[:at], "search", *args[at:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn every way it can end into an exit code."""
        try:
            code = super().invoke(ctx) or 0
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except DowseError as error:
            code = _report(error, as_json=JSON_ASKED in ctx.meta)
        except KeyboardInterrupt:
            click.echo("\ndowse: interrupted; run the same command again to continue", err=True)
            code = 128 + SIGINT
        except BrokenPipeError:
            # Python flushes stdout once more at exit, which would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 128 + SIGPIPE
        except Exception:  # noqa: BLE001 - a bug must be seen, and must not look like exit code 1, "no hits"
            import traceback

            from dowse.serve.wire.result import Exit

            click.echo(traceback.format_exc(), err=True, nl=False)
            click.echo("dowse: this is a bug in Dowse; report it with the lines above", err=True)
            code = Exit.BUG
        ctx.exit(code)


def _after_shared_flags(args: list[str]) -> int:
    """Return the position of the command, or of a query without one."""
    at = 0
    while at < len(args) and (args[at] in _FLAGS or args[at].split("=")[0] == "--index"):
        at += 2 if args[at] == "--index" else 1
    return at


def _report(error: DowseError, *, as_json: bool) -> int:
    from dowse.serve.plain_text import clean
    from dowse.serve.wire import result as wire

    click.echo(f"dowse: {clean(str(error))}", err=True)
    if as_json:
        click.echo(wire.encode(wire.error_object(error)))
    return int(wire.outcome(error).exit_code)


@click.group(cls=LazyGroup, params=list(SHARED_OPTIONS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dowse.__version__, message="dowse %(version)s", help="Print the version and exit.")
def cli(**_flags: Any) -> None:
    """Search everything an engineering team has written."""


def main() -> None:
    """Run the `dowse` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    cli(prog_name="dowse")


if __name__ == "__main__":
    main()
