"""Candidates of judged questions go in; advice comes out: turn these knobs, or keep the default.

Knobs are chosen on some questions and tried on others: with several collections each one is left out in turn, with
one its questions are dealt into five parts. A change is advised only when what it gains where it was not chosen
cannot be chance, and when no collection loses by it beyond chance; all else would fit the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from typing import Generic, TypeVar

import numpy as np

from dowse.errors import BadRequestError
from dowse.evaluate.bootstrap import Figures, Interval, difference, interval
from dowse.evaluate.pools import Knobs, Pool, figures
from dowse.ports import Bm25, Mask, Progress, Reporter

PARTS = 5
FEWEST = 2 * PARTS  # questions; with fewer a part has none or one
ALPHAS = (0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9)
PROSE_SHARES = (0.25, 0.5, 0.75)
EXPONENTS = (1.5, 2.0)
DEPTHS = (100, 200)
K1S = (0.9, 1.2, 1.8)  # chosen: Anserini's, Lucene's, and as far above
BS = (0.5, 0.75, 0.9)


Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Fold(Generic[Choice]):
    """What was chosen without a part, and what it gained there."""

    name: str
    chosen: Choice
    gain: float


@dataclass(frozen=True)
class Advice(Generic[Choice]):
    """What to do, and the figures that say so."""

    default: Choice
    chosen: Choice  # on everything; differs from the default only when the gain holds
    best: Choice  # on everything, whether it holds or not
    default_mean: float
    best_mean: float  # in-sample: flattered
    held_out: Interval  # gain over the default where the knobs were not chosen
    folds: tuple[Fold[Choice], ...]
    losing: tuple[str, ...]  # collections where the best knobs lose beyond chance
    tried: int

    @property
    def keep(self) -> bool:
        return self.chosen == self.default


def constants(default: Bm25) -> list[Bm25]:
    """All constants of BM25 to try, the default's first. Each takes candidates of its own."""
    return list(dict.fromkeys([default, *(Bm25(*each) for each in product(K1S, BS))]))


def grid(default: Knobs, *, dense: bool) -> list[Knobs]:
    """All settings to try, the default first, so that it wins ties.

    Constants of BM25 are tried with every weight of the dense leg, against which they count, and with all else as the
    default has it: with everything they would be thousands.
    """
    alphas = ALPHAS if dense else (default.alpha,)
    company = dict.fromkeys(((default.crowd, default.pull), (0.0, 0.0))) if dense else ((default.crowd, default.pull),)
    turned = product(alphas, PROSE_SHARES, EXPONENTS, DEPTHS, company)
    found = [
        Knobs(alpha, share, exponent, depth, crowd, pull, default.bm25)
        for alpha, share, exponent, depth, (crowd, pull) in turned
    ]
    found += [replace(default, alpha=alpha, bm25=bm25) for bm25 in constants(default.bm25)[1:] for alpha in alphas]
    return [default, *(each for each in found if each != default)]


Candidates = Mapping[Bm25, Sequence[Pool]]
"""One collection's candidates, for each of the constants that are tried."""


def advise(
    collections: Mapping[str, Candidates], tried: Sequence[Knobs], report: Reporter | None = None
) -> Advice[Knobs]:
    """The first of `tried` is the default."""
    questions = {
        name: [pool.question.id for pool in candidates[tried[0].bm25]] for name, candidates in collections.items()
    }
    _check(questions)
    return settled(_table(collections, tried, report), questions, tried)


_Table = Mapping[str, Figures]
"""By collection: a row a setting, a column a question."""
_Masks = Mapping[str, Mask]
_Questions = Mapping[str, Sequence[str]]
"""By collection, the questions' ids."""


def settled(table: _Table, questions: _Questions, tried: Sequence[Choice]) -> Advice[Choice]:
    """By the figures of every setting that was tried; the first is the default."""
    _check(questions)
    folds, gains = [], []
    for name, held in _parts(questions):
        chosen = _best(table, {key: ~mask for key, mask in held.items()})
        own = [table[key][chosen][mask] - table[key][0][mask] for key, mask in held.items() if mask.any()]
        gains.append(own)
        folds.append(Fold(name, tried[chosen], float(np.mean([each.mean() for each in own]))))
    everything = {key: np.ones(len(asked), np.bool_) for key, asked in questions.items()}
    best = _best(table, everything)
    held_out = _held_out(gains, len(questions))
    losing = tuple(key for key in questions if _loses(table[key][best], table[key][0]))
    holds = held_out.low > 0 and not losing
    return Advice(
        tried[0],
        tried[best] if holds else tried[0],
        tried[best],
        _mean(table, 0, everything),
        _mean(table, best, everything),
        held_out,
        tuple(folds),
        losing,
        len(tried),
    )


def _table(collections: Mapping[str, Candidates], tried: Sequence[Knobs], report: Reporter | None) -> _Table:
    table = {}
    for name, candidates in collections.items():
        rows = []
        for number, knobs in enumerate(tried, start=1):
            rows.append(figures(candidates[knobs.bm25], knobs))
            if report:
                report(Progress(f"{name}: settings", number, len(tried)))
        table[name] = np.array(rows)
    return table


def _check(questions: _Questions) -> None:
    if len(questions) > 1:
        return
    ((name, asked),) = questions.items()
    if len(asked) < FEWEST:
        raise BadRequestError(
            f"{name} has {len(asked)} judged questions; at least {FEWEST} are needed to try what was chosen on others."
            " Judge some more with `dowse judge QUERY`"
        )


def _parts(questions: _Questions) -> list[tuple[str, dict[str, Mask]]]:
    """Which questions are held out, part by part."""
    if len(questions) > 1:
        return [
            (left_out, {key: np.full(len(asked), key == left_out) for key, asked in questions.items()})
            for left_out in questions
        ]
    ((name, asked),) = questions.items()
    by_hash = sorted(range(len(asked)), key=lambda number: _shuffled(asked[number]))
    part_of = np.empty(len(asked), np.int64)
    part_of[by_hash] = np.arange(len(asked)) % PARTS
    return [(f"part {part + 1} of {PARTS}", {name: part_of == part}) for part in range(PARTS)]


def _best(table: _Table, masks: _Masks) -> int:
    """The setting with the highest mean over the collections; the first of equals."""
    means = [table[key][:, mask].mean(axis=1) for key, mask in masks.items() if mask.any()]
    return int(np.argmax(np.mean(means, axis=0)))


def _mean(table: _Table, setting: int, masks: _Masks) -> float:
    return float(np.mean([table[key][setting][mask].mean() for key, mask in masks.items()]))


def _held_out(gains: Sequence[Sequence[Figures]], collections: int) -> Interval:
    """Parts of one collection are put together again; collections stay apart."""
    by_part = [each for own in gains for each in own]
    together = by_part if collections > 1 else [np.concatenate(by_part)]
    return interval(together)


def _loses(ours: Figures, default: Figures) -> bool:
    return difference([ours], [default]).high < 0


def _shuffled(identity: str) -> bytes:
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
