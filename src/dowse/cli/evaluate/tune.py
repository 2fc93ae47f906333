"""`dowse tune`: collections or judgments enter; advice on knobs and stages leaves, and a profile if it helps."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.evaluate import eval_inputs as cli_collections
from dowse.cli.evaluate.eval_inputs import What
from dowse.cli.session import Session, shared_options
from dowse.serve.wire import flags as cli_search_flags
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.evaluate.pools import Knobs
    from dowse.evaluate.run import Setting
    from dowse.evaluate.tune import Advice


@click.command()
@click.argument("datasets", nargs=-1, metavar="DATASET...", type=click.Path(path_type=Path))
@cli_search_flags.add(cli_collections.FLAGS)
@click.option("--stages", is_flag=True, help="Also try rerankers, boosts, freshness and exact names; takes longer.")
@click.option("--save", metavar="NAME", help="Write the profile NAME into dowse.toml here, if there is a gain.")
@shared_options
def tune(session: Session, datasets: tuple[Path, ...], stages: bool, save: str | None, **flags: Any) -> int:
    """Find out whether other settings would answer better.

    \b
    dowse tune ~/data/scifact ~/data/cosqa
    dowse tune judgments.tsv --stages --save ours
    dowse search --profile ours QUERY

    Settings are chosen on some of the questions and tried on the others. Unless the gain there is beyond chance the
    advice is to keep the default.
    """
    from dowse.cli import rich_output as terminal_rich
    from dowse.evaluate.pools import Knobs, pools_of
    from dowse.evaluate.profile_file import checked_name
    from dowse.evaluate.tune import advise, constants, grid
    from dowse.evaluate.tune_stages import advise_stages
    from dowse.query.plan.profiles import named

    if save:
        checked_name(save)
    what = What(**{field.name: flags.pop(field.name) for field in fields(What)})
    profile = session.config.profile
    with (
        terminal_rich.progress(wanted=not session.quiet) as report,
        cli_collections.askers(session, datasets, what, report) as asked,
    ):
        own = named(profile, asked[0].parts.profiles)
        default = Knobs.of(own)
        candidates = {
            asker.collection.dataset.name: {
                bm25: pools_of(asker, profile, bm25, report) for bm25 in constants(default.bm25)
            }
            for asker in asked
        }
        dense = all(asker.embedder is not None for asker in asked)
        fusion = advise(candidates, grid(default, dense=dense), report)
        later = advise_stages(asked, own, report) if stages else None
    return _finish(session, fusion, later, save)


def _finish(session: Session, fusion: Advice[Knobs], later: Advice[Setting] | None, save: str | None) -> int:
    from dowse.evaluate import advice
    from dowse.evaluate.profile_file import Tuned, profile_text, save_profile

    tuned = Tuned(fusion.chosen, later.chosen.knobs if later else (), session.config.profile)
    gained = not fusion.keep or bool(later and not later.keep)
    written = save_profile(session.cwd / "dowse.toml", save, tuned) if save and gained else None
    if session.as_json:
        found = advice.advice_object(fusion, advice.knobs_object)
        found |= {"stages": advice.advice_object(later, advice.setting_object)} if later else {}
        session.emit_json(found | {"written": str(written) if written else None})
        return Exit.HITS
    for line in advice.advice_lines(fusion, advice.told_knobs):
        session.emit(line)
    for line in ("", "the stages after fusion:", *advice.advice_lines(later, advice.told_setting)) if later else ():
        session.emit(line)
    if gained:
        session.emit(f"\n{profile_text(save or 'tuned', tuned)}")
    if written:
        session.note(f"wrote {written}; use it with: dowse search --profile {save} QUERY")
    return Exit.HITS
