"""Arguments enter; a command is found, loaded and run, and an exit code leaves."""

from __future__ import annotations

import io
import os
import sys
from signal import SIGINT, SIGPIPE
from typing import Any

import click

import dowse
from dowse.cli.help import COMMANDS, page
from dowse.cli.options import BARE_WORD, JSON_ASKED, OPTIONS
from dowse.errors import DowseError

_FLAGS = frozenset(("--json", "-q", "--quiet", "-v", "--verbose", "--no-color"))
_ASIDE = frozenset(("-h", "--help", "--version"))


class LazyGroup(click.Group):
    """Imports a command's module only when it runs, and takes what is no command for a query."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from importlib import import_module

        place = next((place for name, place, _ in COMMANDS if name == cmd_name), None)
        if place is None:
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(import_module(f"dowse.cli.{module}"), attribute)
        return command

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
        """The outermost handler: every way a command can end becomes an exit code."""
        try:
            code = super().invoke(ctx) or 0
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except DowseError as error:
            code = _tell(error, as_json=JSON_ASKED in ctx.meta)
        except KeyboardInterrupt:
            click.echo("\ndowse: interrupted; run the same command again to go on", err=True)
            code = 128 + SIGINT
        except BrokenPipeError:
            # Python flushes stdout once more when it ends; let that go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 128 + SIGPIPE
        except Exception:  # noqa: BLE001 - a bug must be seen, and must not look like exit code 1, "no hits"
            code = _tell_bug()
        ctx.exit(code)


def _after_shared_flags(args: list[str]) -> int:
    """Where the command, or a query without one, starts."""
    at = 0
    while at < len(args) and (args[at] in _FLAGS or args[at].split("=")[0] == "--index"):
        at += 2 if args[at] == "--index" else 1
    return at


def _tell(error: DowseError, *, as_json: bool) -> int:
    from dowse.serve import plain_text as terminal
    from dowse.serve.wire import result as wire

    click.echo(f"dowse: {terminal.clean(str(error))}", err=True)
    if as_json:
        click.echo(wire.encode(wire.error_object(error)))
    return int(wire.outcome(error).exit_code)


def _tell_bug() -> int:
    import traceback

    from dowse.serve.wire.result import Exit

    click.echo(traceback.format_exc(), err=True, nl=False)
    click.echo("dowse: this is a bug in Dowse; please report it with the lines above", err=True)
    return Exit.BUG


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"dowse {dowse.__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print it.")
def cli(**_flags: Any) -> None:
    """One search over everything an engineering team has written."""


for _option in OPTIONS:
    _option(cli)


def main() -> None:
    """The `dowse` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    cli(prog_name="dowse")


if __name__ == "__main__":
    main()
