"""Click options and help pages: option groups, the flags that every command shares, notes on old flags.

Kept apart from the code that acts on them, so that `--help` imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

JSON_ASKED = "dowse.json"  # in click's meta: errors are printed as JSON, too
BARE_WORD = "dowse.bare"  # in click's meta: the first word of a query typed without `search`
HELP_ALL = "dowse.help_all"  # in click's meta: help lists everything
NOTES = "dowse.notes"  # in click's meta: notes on old flags, printed once it is known whether --quiet was given
LAST_GROUPS = ("Output", "General")

Decorator = Callable[[Any], Any]


class GroupedOption(click.Option):
    """An option with the heading that help lists it under; its help text names the default itself."""

    def __init__(self, *args: Any, group: str = "Options", rare: bool = False, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group
        self.rare = rare  # listed by --help-all only

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None if self.rare and HELP_ALL not in ctx.meta else super().get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        return {}


option = partial(click.option, cls=GroupedOption)


class GroupedCommand(click.Command):
    """A command whose help lists options by group: its own first, then output and general ones."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", LAST_GROUPS[-1]), []).append(record)
        for title in sorted(groups, key=lambda each: LAST_GROUPS.index(each) + 1 if each in LAST_GROUPS else 0):
            with formatter.section(title):
                formatter.write_dl(groups[title])


def add(options: Sequence[Decorator]) -> Decorator:
    """Return a decorator that adds these options, in this order."""

    def decorate(function: Any) -> Any:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def note_old(ctx: click.Context, param: click.Parameter, value: object, new: str) -> None:
    """Record a note with the new spelling of an old flag."""
    flag = param.secondary_opts[0] if value is False else param.opts[-1]
    ctx.meta.setdefault(NOTES, []).append(f"{flag} is deprecated and will be removed in the next version; use: {new}")


def _remember_json(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[JSON_ASKED] = True
    return value


SHARED_OPTIONS = (
    GroupedOption(["--json", "as_json"], is_flag=True, is_eager=True, callback=_remember_json, group="Output",
                  help="Print JSON on stdout."),
    GroupedOption(["-q", "--quiet"], is_flag=True, group="Output", help="Hide notes and progress."),
    GroupedOption(["-v", "--verbose"], is_flag=True, group="Output", help="Print timings and other details on stderr."),
    GroupedOption(["--no-color", "no_colour"], is_flag=True, group="Output",
                  help="Print without colours, as with NO_COLOR."),
    GroupedOption(["--index"], metavar="DIR", group="General",
                  help="Use this index folder [default: DOWSE_INDEX, or the nearest .dowse/]."),
)  # fmt: skip
