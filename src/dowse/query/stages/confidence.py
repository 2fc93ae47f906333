"""How sure an answer is: a slate goes in; chances that compare between questions, and "nothing found", come out.

A fused value says how a chunk stands against the others of its own query, so the best of a bad lot looks as good as a
true answer. These chances come from what does not depend on the lot: the cosine, the share of the attainable BM25, and
how many chunks there were to find something near in by chance. docs/scoring.md shows how far they can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import msgspec
import numpy as np

from dowse.identity import id_number
from dowse.ports import Ids, StoreReader, Values
from dowse.query.stages.state import Fused, Hit, Slate
from dowse.types import ChunkId, Leg

TOP = 5  # hits, one of which has to be right for an answer to be right; chosen
AGREED = 10  # places of a list that are looked at for agreement; chosen


@dataclass(frozen=True)
class Logistic:
    """1/(1 + e^−x), x the sum of the features, each times its coefficient, and the constant."""

    cosine: float  # in [0,1]
    coverage: float  # √ of the share of the attainable BM25, in the better word leg
    agreement: float  # share of ten places that both word legs fill with the same chunks
    size: float  # ln of the number of chunks, within what was fitted
    constant: float

    def __call__(self, cosine: float, coverage: float, agreement: float, size: float) -> float:
        x = self.cosine * cosine + self.coverage * coverage + self.agreement * agreement + self.size * size
        return 1 / (1 + exp(-(x + self.constant)))


@dataclass(frozen=True)
class Fit:
    """What was learnt for one embedding model: a cosine means something else in each."""

    answer: Logistic  # one of the first five hits is right
    hit: Logistic  # this hit is right
    nothing_below: float  # the answer's chance under which nothing is said to be found
    chunks: tuple[int, int]  # sizes of the smallest and the largest corpus it was fitted on

    def size(self, chunks: int) -> float:
        """No trend is carried beyond what was seen."""
        least, most = self.chunks
        return log(min(max(chunks, least), most))


# Questions: of cranfield, cisi, cosqa, scifact, covidqa and irc_threads (up to 200 each) and of the sample company.
# Without an answer: those of the other collections, 20 everyday questions and 60 strings of gibberish, per corpus. Both
# sorts weigh the same, and so does each corpus. Ridge 1e-4 on standardised features. For MiniLM: cranfield, cisi,
# covidqa and the sample. `nothing_below` was chosen: it costs 3 % (granite), 6 % (MiniLM) and 2 % (words) of the right
# answers, in corpora that were left out of the fit.
FITS: tuple[tuple[str, Fit], ...] = (
    (
        "granite-embedding-30m-english",
        Fit(Logistic(21.12, 3.75, 0.0, -0.92, -10.31), Logistic(16.94, 1.22, 0.0, -1.07, -6.69), 0.15, (499, 6267)),
    ),
    (
        "all-MiniLM-L6-v2",
        Fit(Logistic(9.04, 5.1, 0.0, -1.24, 2.14), Logistic(6.36, 1.23, 0.0, 0.0, -5.04), 0.1, (499, 2592)),
    ),
)
# Without vectors, or with those of a model that was not fitted. Words alone tell an off-topic question less well.
WORDS = Fit(Logistic(0.0, 8.01, 1.94, 0.0, -5.33), Logistic(0.0, 4.56, 0.0, 0.0, -4.03), 0.1, (499, 6267))


@dataclass(frozen=True)
class Confidence:
    """`value`: the chance that one of the first five hits answers the question."""

    value: float
    nothing_found: bool
    of_hits: Mapping[ChunkId, float]  # the chance of each hit that is shown, by the id it is shown under


class Judge(msgspec.Struct, frozen=True):
    """The last stage: says how sure the answer is. Changes no hit."""

    store: StoreReader
    model: str | None  # that embedded the question
    name: str = "confidence"

    def __call__(self, slate: Slate, /) -> Slate:
        return slate.changed(confidence=judged(slate, self.store, self.model))


def judged(slate: Slate, reader: StoreReader, model: str | None) -> Confidence | None:
    """None when nothing is shown, or no terms were made to judge it by. `model` embedded the question.

    A hit that bears the very name that the question spells is not "nothing", whatever its chance.
    """
    shown = slate.hits[: slate.query.k]
    if not shown or not slate.query.terms:
        return None
    ids = np.array([id_number(hit.found.id) for hit in shown], np.uint64)
    fitted, chunks = dict(FITS).get(model or "", WORDS), reader.stats.chunks
    cosines, coverages = _cosines(slate, reader, ids), _coverages(slate, reader, ids)
    of_hits = {}
    for hit, cosine, coverage in zip(shown, cosines.tolist(), coverages.tolist(), strict=True):
        fit = _usable(fitted, cosine)
        of_hits[hit.chunk.id] = fit.hit(_known(cosine), coverage, 0.0, fit.size(chunks))
    near = float(np.nan_to_num(cosines[:TOP], nan=-1.0).max())
    fit = _usable(fitted, near if near >= 0 else float("nan"))
    value = fit.answer(max(near, 0.0), float(coverages[:TOP].max()), _agreement(slate.fused), fit.size(chunks))
    return Confidence(value, value < fit.nothing_below and not _named(shown), of_hits)


def _usable(fitted: Fit, cosine: float) -> Fit:
    """Words have the word where there is no vector."""
    return WORDS if np.isnan(cosine) else fitted


def _known(cosine: float) -> float:
    return 0.0 if np.isnan(cosine) else cosine


def _cosines(slate: Slate, reader: StoreReader, ids: Ids) -> Values:
    """To the question itself, not below 0; NaN where there is no vector, or the dense leg did not answer."""
    fused = _fused_scores(slate, "dense")
    if fused is not None:
        return np.maximum(fused, 0.0)
    asked = next((each.vector for each in slate.lists if each.vector is not None and each.variant == 0), None)
    return np.full(len(ids), np.nan) if asked is None else np.maximum(reader.score_vectors(asked, ids), 0.0)


def _coverages(slate: Slate, reader: StoreReader, ids: Ids) -> Values:
    """In the better leg, whether it was asked or not: a question to the dense leg alone has words, too."""
    terms = {leg: of_leg for leg, of_leg in slate.query.terms if of_leg}
    scores = {leg: fused for leg in terms if (fused := _fused_scores(slate, leg)) is not None}
    unknown = {leg: of_leg for leg, of_leg in terms.items() if leg not in scores}
    scores |= reader.score_words(unknown, ids) if unknown else {}
    attainable = reader.attainable_words(terms)
    shares = [scores[leg] / attainable[leg] for leg in terms if attainable[leg] > 0]
    best: Values = np.sqrt(np.max(shares, axis=0)) if shares else np.zeros(len(ids))
    return best


def _fused_scores(slate: Slate, leg: Leg) -> Values | None:
    """What fusion has asked of the store already, of the hits that are shown; None when that is not all there is."""
    shown = slate.hits[: slate.query.k]
    rows = [hit.row for hit in shown if hit.row is not None]
    columns = () if slate.fused is None else slate.fused.columns
    column = next((each for each in columns if each.leg == leg and each.variant == 0), None)
    return None if column is None or len(rows) < len(shown) else column.scores[rows]


def _agreement(fused: Fused | None) -> float:
    """Of the word legs."""
    legs: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
    columns = () if fused is None else [each for each in fused.columns if each.leg in legs and each.variant == 0]
    if len(columns) < len(legs):
        return 0.0
    first, second = ((column.ranks > 0) & (column.ranks <= AGREED) for column in columns)
    return float((first & second).sum()) / AGREED


def _named(hits: Sequence[Hit]) -> bool:
    return any(score.stage == "exact" for hit in hits for score in hit.scores)
