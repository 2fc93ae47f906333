"""Calibration of the confidence of hits: fits that leave one collection out, and their reliability by bins.

    python -m bench.calibration COLLECTION … [--cache DIR]

COLLECTION is a folder in the BEIR layout. For each, its questions and strings of gibberish are asked for ten hits. A
fit of all other collections predicts the hits of one. A bin with at least 100 hits should be within 0.10 of the share
of right hits. The last line has the coefficients of a fit of all, for `dowse.query.stages.confidence`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import cache
from dowse.config import Config
from dowse.evaluate.collection import Collection, opened
from dowse.evaluate.datasets import load
from dowse.models.choose import Models
from dowse.query.pipeline import prepared, run
from dowse.query.result import result_of
from dowse.query.stages.confidence import FITS, WORDS, features
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, ScoredChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Figures = NDArray[np.float64]
else:
    Figures = Any

QUESTIONS = 300  # of a collection
GIBBERISH = 50  # strings, per collection
GIBBERISH_WEIGHT = 0.3  # of all of it, beside the questions
RIDGE = 100.0  # on standardised features; 0.001 leaves one bin off by 0.14, 1,000 leaves three
BIN = 0.1
LEAST = 100  # hits of a bin that counts
NAMES = ("cosine", "coverage", "ln chunks", "ln rank")


@dataclass(frozen=True)
class JudgedHits:
    """Features of hits of one collection, and whether they are right; gibberish has no right hit."""

    name: str
    features: Figures
    right: Figures
    gibberish: Figures  # features


def nonsense(number: int) -> str:
    """Return one to four words of random letters, always the same for a number."""
    random = Random(f"gibberish {number}")
    lengths = [random.randint(4, 10) for _ in range(number % 4 + 1)]
    return " ".join("".join(random.choices(ascii_lowercase, k=length)) for length in lengths)


def fitted(features: Figures, right: Figures, weights: Figures, ridge: float = RIDGE) -> Figures:
    """Return coefficients of a logistic regression, the constant last, by Newton's method on standardised features."""
    mean = np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights)) + 1e-9
    rows = np.column_stack([(features - mean) / spread, np.ones(len(features))])
    found = np.zeros(rows.shape[1])
    penalty = np.diag([*np.full(features.shape[1], ridge), 0.0])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (chance - right)) + penalty @ found
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + penalty
        found -= np.linalg.solve(curve + 1e-9 * np.eye(len(found)), slope)
    slopes = found[:-1] / spread
    return np.append(slopes, found[-1] - slopes @ mean)


def fit_of(hits: Sequence[JudgedHits]) -> Figures:
    features = np.concatenate([*(each.features for each in hits), *(each.gibberish for each in hits)])
    asked, noise = sum(len(each.right) for each in hits), sum(len(each.gibberish) for each in hits)
    right = np.concatenate([*(each.right for each in hits), np.zeros(noise)])
    weights = np.concatenate([np.ones(asked), np.full(noise, GIBBERISH_WEIGHT * asked / max(noise, 1))])
    return fitted(features, right, weights)


def predicted(coefficients: Figures, features: Figures) -> Figures:
    chances: Figures = 1 / (1 + np.exp(-(features @ coefficients[:-1] + coefficients[-1])))
    return chances


def bins(chances: Figures, right: Figures) -> Iterator[str]:
    """Yield a line for each bin with enough hits: its limits, hits, mean confidence and share of right hits."""
    for low in np.arange(0, 1, BIN):
        inside = (chances >= low) & (chances < low + BIN)
        if inside.sum() >= LEAST:
            mean, share = chances[inside].mean(), right[inside].mean()
            far = "" if abs(mean - share) <= 0.1 else "\toff by more than 0.10"
            yield f"{low:.1f}-{low + BIN:.1f}\t{inside.sum()}\t{mean:.2f}\t{share:.2f}{far}"


def judged_hits(collection: Collection, *, words: bool) -> JudgedHits:
    """Ask the questions of a collection and gibberish, ten hits each."""
    reader, tokenizer, dataset = collection.store.reader(), Tokenizer(), collection.dataset
    embedder = None if words else collection.embedder
    fit = WORDS if words or embedder is None else dict(FITS)[embedder.model]
    size = fit.size(reader.stats.chunks)

    def ask(text: str) -> tuple[Sequence[ScoredChunk], list[list[float]]]:
        ready = prepared(QueryRequest(text), reader, embedder, tokenizer, only_shown=True)
        traced = run(ready.waves, ready.state, None, None)
        state, hits = traced.state, traced.state.hits[: traced.state.query.k]
        if not hits or not state.query.terms:
            return (), []
        cosines, coverages = features(state, ready.context.reader, hits)
        rows = zip(np.nan_to_num(cosines).tolist(), coverages.tolist(), strict=True)
        return result_of(traced, ready.context).chunks, [
            [cosine, coverage, size, log(rank)] for rank, (cosine, coverage) in enumerate(rows, start=1)
        ]

    found: list[list[float]] = []
    right: list[float] = []
    for question in dataset.questions:
        hits, rows = ask(question.text)
        grades = dataset.grades[question.id]
        right += [float(grades.get(collection.label(question, hit, set()), 0) > 0) for hit in hits]
        found += rows
    noise = [row for number in range(GIBBERISH) for row in ask(nonsense(number))[1]]
    return JudgedHits(dataset.name, np.array(found), np.array(right), np.array(noise).reshape(-1, len(NAMES)))


def report(hits: Sequence[JudgedHits], own: Figures) -> Iterator[str]:
    """Yield the bins of fits that leave a collection out, and those of the constants `own`."""
    chances = []
    for each in hits:
        chances.append(predicted(fit_of([other for other in hits if other is not each]), each.features))
        yield f"{each.name}: mean confidence {chances[-1].mean():.2f}, right {each.right.mean():.2f}"
    right = np.concatenate([each.right for each in hits])
    yield "fits that leave the collection out\nbin\thits\tconfidence\tright"
    yield from bins(np.concatenate(chances), right)
    yield "constants of the package\nbin\thits\tconfidence\tright"
    yield from bins(np.concatenate([predicted(own, each.features) for each in hits]), right)
    final = fit_of(hits)
    noise = predicted(final, np.concatenate([each.gibberish for each in hits]))
    yield f"gibberish: at most {noise.max():.2f} before the limit by the answer"
    yield "\t".join(f"{name} {value:.2f}" for name, value in zip((*NAMES, "constant"), final, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__.splitlines()[0])
    parser.add_argument("collections", type=Path, nargs="+", help="folders in the BEIR layout")
    parser.add_argument("--cache", type=Path, help="folder of the indexes; default: the bench cache")
    parser.add_argument("--words", action="store_true", help="without vectors")
    options = parser.parse_args()
    place, config = options.cache or cache.folder("calibration"), Config()
    models = Models(config.embedder, config.models_folder, config.threads, place)
    hits = []
    for folder in options.collections:
        dataset = load(folder, None).limited(QUESTIONS)
        with opened(dataset, place, models.for_index(None)) as collection:
            hits.append(judged_hits(collection, words=options.words))
    own = (WORDS if options.words else FITS[0][1]).hit
    constants = np.array([own.cosine, own.coverage, own.size, own.rank, own.constant])
    print("\n".join(report(hits, constants)))


if __name__ == "__main__":
    main()
