"""The flags that every command has, as click options; apart from what they do, so that `--help` loads little."""

from __future__ import annotations

import click

JSON_ASKED = "dowse.json"  # in click's meta: errors are printed as JSON, too
BARE_WORD = "dowse.bare"  # in click's meta: the first word of a query typed without `search`
SHARED = ("index", "as_json", "quiet", "verbose", "no_colour")


def _remember_json(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[JSON_ASKED] = True
    return value


OPTIONS = (
    click.option("--index", metavar="DIR", help="The index folder; else DOWSE_INDEX or the nearest .dowse/."),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_remember_json,
        help="Print JSON on stdout.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="No notes and no progress."),
    click.option("-v", "--verbose", is_flag=True, help="Timings and other details on stderr."),
    click.option("--no-color", "no_colour", is_flag=True, help="No colours; NO_COLOR does the same."),
)
