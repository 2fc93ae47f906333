"""Options of a query: flags and `--set` texts enter, the fields of a QueryRequest leave.

`search`, `explain`, `eval`, `judge` and `tune` take theirs from the one table in `serve.wire.flags`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.options import HELP_ALL, Decorator, note_old, option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.errors import BadRequestError
from dowse.serve.wire.flags import EVERYDAY, FIELDS, FINER, QueryField, known, value_of, words

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dowse.types import QueryRequest

SETTINGS = "settings"


class QueryCommand(SessionCommand):
    """A command with `--set`, whose `--help-all` lists every name that can be set."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        if HELP_ALL not in ctx.meta:
            return
        for title in dict.fromkeys(each.group for each in FINER):
            with formatter.section(f"{title} (--set NAME=VALUE)"):
                formatter.write_dl([(f"{each.name}={each.value}", each.help) for each in FINER if each.group == title])
        with formatter.section("Other names for --set"):
            formatter.write_dl([(f"{each.name}={each.value}", f"Same as {each.spelling}.") for each in EVERYDAY])


def query_options(names: Iterable[str] = tuple(FIELDS), *, old: Iterable[str] = tuple(FIELDS)) -> list[Decorator]:
    """Make the everyday options of these fields, the hidden ones of `old` fields, `--set` and `--help-all`."""
    return [
        *(_everyday(FIELDS[name]) for name in names if FIELDS[name].flags),
        *(_old(FIELDS[name]) for name in old if FIELDS[name].old),
        option("--set", SETTINGS, multiple=True, metavar="NAME=VALUE", group="General", callback=_settings,
               shell_complete=_complete, help="Set an advanced option; can be repeated. See --help-all."),
        option("--help-all", is_flag=True, is_eager=True, expose_value=False, group="General", callback=_help_all,
               help="Show this message with every NAME of --set and exit."),
    ]  # fmt: skip


def request_fields(params: dict[str, Any]) -> dict[str, Any]:
    """Take the fields of a QueryRequest that were given out of a command's parameters."""
    own = {name: params.pop(name) for name in FIELDS if name in params}
    given = {name: value for name, value in own.items() if value is not None}
    by_name: dict[str, Any] = params.pop(SETTINGS)
    for name in given.keys() & by_name.keys():
        raise BadRequestError(f"{name} is given twice, as a flag and by --set; remove one")
    return given | by_name


def request_of(session: CommandSession, text: str, fields: dict[str, Any]) -> QueryRequest:
    """Make a request of these fields, with the session's settings for the others."""
    from dowse.types import QueryRequest

    return QueryRequest(text, **({"top_k": session.config.top_k, "profile": session.config.profile} | fields))


def _everyday(field: QueryField) -> Decorator:
    if field.is_switch:
        return option(*field.flags, field.name, is_flag=True, default=None, group=field.group, help=field.help)
    return option(*field.flags, field.name, multiple=True, metavar=field.value, group=field.group, help=field.help,
                  callback=lambda _ctx, _param, texts: value_of(field.name, texts) if texts else None)  # fmt: skip


def _old(field: QueryField) -> Decorator:
    if field.is_switch:
        return option(field.old, field.name, is_flag=True, default=None, hidden=True, callback=_old_value)
    return option(field.old, field.name, multiple=True, hidden=True, callback=_old_value)


def _old_value(ctx: click.Context, param: click.Parameter, given: bool | tuple[str, ...] | None) -> Any:
    if given is None or given == ():
        return None
    texts = [str(given).lower()] if isinstance(given, bool) else list(given)
    note_old(ctx, param, given, shlex.join(words(str(param.name), texts)))
    return value_of(str(param.name), texts)


def _settings(_ctx: click.Context, _param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    texts: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise BadRequestError(f"--set {pair!r} has no value; write --set {name}=VALUE")
        texts.setdefault(known(name.strip()).name, []).append(text)
    return {name: value_of(name, each) for name, each in texts.items()}


def _complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(f"{name}=") for name in FIELDS if name.startswith(typed)]


def _help_all(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
