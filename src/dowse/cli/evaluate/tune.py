"""`dowse tune`: collections or judgments enter; advice on settings leaves, and a profile if it helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.evaluate.eval_inputs import INPUT_OPTIONS, runners
from dowse.cli.options import add, option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.serve.wire.flags import FIELDS
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.evaluate.pools import Knobs
    from dowse.evaluate.run import SearchSetting
    from dowse.evaluate.tune import Advice


@click.command(cls=SessionCommand)
@click.argument("datasets", nargs=-1, metavar="[DATASET]...", type=click.Path(path_type=Path))
@add(INPUT_OPTIONS)
@option("--profile", metavar="NAME", help=FIELDS["profile"].help)
@option("--stages", is_flag=True, help="Also try rerankers, boosts, freshness and exact names; slower.")
@option("--save", metavar="NAME", help="Write a profile NAME to dowse.toml if the results improve.")
def tune(session: CommandSession, datasets: tuple[Path, ...], stages: bool, save: str | None, **flags: Any) -> int:
    """Find settings that improve the results.

    \b
    dowse tune ~/data/scifact ~/data/cosqa
    dowse tune judgments.tsv --stages --save ours
    dowse search --profile ours QUERY

    Chooses settings on one part of the queries and tests them on the rest. Recommends the default unless the
    gain on the rest is statistically significant.
    """
    from dowse.cli.rich_output import progress
    from dowse.evaluate.pools import Knobs, pools_of
    from dowse.evaluate.tune import advise, advise_stages, checked_name, constants, grid
    from dowse.query.plan.profiles import named

    if save:
        checked_name(save)
    session = session.with_config(profile=flags.pop("profile"))
    profile = session.config.profile
    with (
        progress(wanted=not session.quiet) as report,
        runners(session, datasets, flags, report) as asked,
    ):
        own = named(profile, asked[0].parts.profiles)
        default = Knobs.of(own)
        candidates = {
            runner.collection.dataset.name: {
                bm25: pools_of(runner, profile, bm25, report) for bm25 in constants(default.bm25)
            }
            for runner in asked
        }
        dense = all(runner.embedder is not None for runner in asked)
        fusion = advise(candidates, grid(default, dense=dense), report)
        later = advise_stages(asked, own, report) if stages else None
    return _finish(session, fusion, later, save)


def _finish(
    session: CommandSession, fusion: Advice[Knobs], later: Advice[SearchSetting] | None, save: str | None
) -> int:
    from dowse.evaluate import tune as advice

    tuned = advice.Tuned(fusion.chosen, later.chosen.knobs if later else (), session.config.profile)
    gained = not fusion.keep or bool(later and not later.keep)
    written = advice.save_profile(session.cwd / "dowse.toml", save, tuned) if save and gained else None
    if session.as_json:
        found = advice.advice_object(fusion)
        found |= {"stages": advice.advice_object(later)} if later else {}
        session.emit_json(found | {"written": str(written) if written else None})
        return Exit.HITS
    session.emit(*advice.advice_lines(fusion))
    if later:
        session.emit("", "Stages after fusion:", *advice.advice_lines(later))
    if gained:
        session.emit(f"\n{advice.profile_text(save or 'tuned', tuned)}")
    if written:
        session.note(f"Wrote {written}. Use it: dowse search --profile {save} QUERY")
    return Exit.HITS
