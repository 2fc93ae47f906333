"""`dowse tune`: collections or judgments enter; advice on the knobs of the fusion leaves, and a profile if it helps."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.serve import cli_collections, cli_search_flags
from dowse.serve.cli_collections import What
from dowse.serve.cli_session import Session, shared_options
from dowse.serve.wire import Exit

if TYPE_CHECKING:
    from dowse.evaluate.tune import Advice


@click.command()
@click.argument("datasets", nargs=-1, metavar="DATASET...", type=click.Path(path_type=Path))
@cli_search_flags.add(cli_collections.FLAGS)
@click.option("--save", metavar="NAME", help="Write the profile NAME into dowse.toml here, if there is a gain.")
@shared_options
def tune(session: Session, datasets: tuple[Path, ...], save: str | None, **flags: Any) -> int:
    """Find out whether other settings would answer better.

    \b
    dowse tune ~/data/scifact ~/data/cosqa
    dowse tune judgments.tsv --save ours
    dowse search --profile ours QUERY

    Settings are chosen on some of the questions and tried on the others. Unless the gain there is beyond chance the
    advice is to keep the default.
    """
    from dowse.evaluate.pools import Knobs, pools_of
    from dowse.evaluate.profile_file import checked_name
    from dowse.evaluate.tune import advise, grid
    from dowse.query.profiles import named
    from dowse.serve import terminal_rich

    if save:
        checked_name(save)
    what = What(**{field.name: flags.pop(field.name) for field in fields(What)})
    profile = session.config.profile
    with (
        terminal_rich.progress(wanted=not session.quiet) as report,
        cli_collections.askers(session, datasets, what, report) as asked,
    ):
        default = Knobs.of(named(profile, asked[0].parts.profiles))
        pools = {asker.collection.dataset.name: pools_of(asker, profile, report) for asker in asked}
        dense = all(asker.embedder is not None for asker in asked)
        advice = advise(pools, default, grid(default, dense=dense), report)
    return _finish(session, advice, save)


def _finish(session: Session, advice: Advice, save: str | None) -> int:
    from dowse.evaluate.advice import advice_lines, advice_object
    from dowse.evaluate.profile_file import profile_text, save_profile

    base = session.config.profile
    text = profile_text(save or "tuned", advice.chosen, base)
    written = None
    if save and not advice.keep:
        written = save_profile(session.cwd / "dowse.toml", save, advice.chosen, base)
    if session.as_json:
        session.emit_json(advice_object(advice) | {"written": str(written) if written else None})
        return Exit.HITS
    for line in advice_lines(advice):
        session.emit(line)
    if not advice.keep:
        session.emit(f"\n{text}")
    if written:
        session.note(f"wrote {written}; use it with: dowse search --profile {save} QUERY")
    return Exit.HITS
