"""Confidence: probabilities that compare between queries, and the decision "nothing found".

A fused value compares a chunk with others of the same query, so that the best of bad candidates looks like an answer.
The probabilities use features that do not depend on the candidates: the cosine, the share of the attainable BM25, and
the size of the index. docs/scoring.md shows how far to trust them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

import msgspec
import numpy as np

from dowse.identity import id_number
from dowse.ports import Ids, QuerySession, Values
from dowse.query.stages.state import Fused, Hit, QueryState
from dowse.types import ChunkId, Leg

TOP = 5  # hits, one of which must be right for a right answer; chosen
AGREED = 10  # ranks of a list that are compared for agreement; chosen


class Logistic(msgspec.Struct, frozen=True):
    """Logistic function of the features times their coefficients plus the constant."""

    cosine: float  # in [0,1]
    coverage: float  # √ of the share of the attainable BM25, in the better word leg
    agreement: float  # share of ten places that both word legs fill with the same chunks
    size: float  # ln of the number of chunks, within the fitted range
    constant: float
    rank: float = 0.0  # ln of the rank of a hit

    def __call__(self, cosine: float, coverage: float, agreement: float, size: float, rank: int = 1) -> float:
        x = self.cosine * cosine + self.coverage * coverage + self.agreement * agreement + self.size * size
        return 1 / (1 + exp(-(x + self.rank * log(rank) + self.constant)))


class Fit(msgspec.Struct, frozen=True):
    """Coefficients for one embedding model: the meaning of a cosine differs between models."""

    answer: Logistic  # one of the first five hits is right
    hit: Logistic  # this hit is right
    nothing_below: float  # below this probability of the answer, the result is "nothing found"
    chunks: tuple[int, int]  # sizes of the smallest and the largest corpus it was fitted on

    def size(self, chunks: int) -> float:
        """Return ln of the number of chunks, clamped to the fitted range."""
        least, most = self.chunks
        return log(min(max(chunks, least), most))


# granite: queries of cranfield, cisi, cosqa, scifact, covidqa and irc_threads (up to 300 each) and on 14 repositories,
# grouped; 50 strings of gibberish per corpus have half of their weight for the answer and 0.3 of it for a hit. Rounded;
# `python -m bench.calibration` fits again. MiniLM: cranfield, cisi, covidqa and the sample project, as before.
# `nothing_below` is chosen: it costs 2 % (granite), 6 % (MiniLM) and 2 % (words) of the right answers.
FITS: tuple[tuple[str, Fit], ...] = (
    (
        "granite-embedding-30m-english",
        Fit(Logistic(13, 6, 0.0, -0.8, -6), Logistic(13, 2, 0.0, -0.9, -4.25, -1.1), 0.3, (499, 6267)),
    ),
    (
        "all-MiniLM-L6-v2",
        Fit(Logistic(9.04, 5.1, 0.0, -1.24, 2.14), Logistic(6.36, 1.23, 0.0, 0.0, -5.04), 0.1, (499, 2592)),
    ),
)
# Without vectors, or with those of another model. Words alone detect an off-topic query less well.
WORDS = Fit(Logistic(0.0, 8.01, 1.94, 0.0, -5.33), Logistic(0.0, 4.0, 0.0, 0.0, -3.5, -0.8), 0.1, (499, 6267))
NO_ANSWER = 2 / 3  # of the answer's probability, at most, for a hit of "nothing found": with granite, 20 %
NAMED = 0.9  # of a first hit whose name the query spells; 0.96 of 85 on the repositories are right


class Confidence(msgspec.Struct, frozen=True):
    """Probability that one of the first five hits is right, and of each shown hit."""

    value: float
    nothing_found: bool
    of_hits: Mapping[ChunkId, float]  # by the id of the shown chunk


class Judge(msgspec.Struct, frozen=True):
    """Last stage: adds the confidence. Changes no hit."""

    store: QuerySession
    model: str | None  # of the query's vector
    name: str = "confidence"

    def __call__(self, state: QueryState, /) -> QueryState:
        return state.changed(confidence=judged(state, self.store, self.model))


def judged(state: QueryState, reader: QuerySession, model: str | None) -> Confidence | None:
    """Return the confidence; None without hits or terms. `model` embedded the query.

    A hit is right at most as often as one of the first five. One with the exact name in the query is never "nothing
    found".
    """
    shown = state.hits[: state.query.k]
    if not shown or not state.query.terms:
        return None
    count, named = len(shown), _named(shown[:1])
    ranks = [*range(1, count + 1), *(rank for rank, hit in enumerate(shown, start=1) for _ in hit.passages)]
    shown = (*shown, *(passage for hit in shown for passage in hit.passages))
    fitted, chunks = dict(FITS).get(model or "", WORDS), reader.stats.chunks
    cosines, coverages = features(state, reader, shown)
    first = min(count, TOP)
    near = float(np.nan_to_num(cosines[:first], nan=-1.0).max())
    fit = _usable(fitted, near if near >= 0 else float("nan"))
    value = fit.answer(max(near, 0.0), float(coverages[:first].max()), _agreement(state.fused), fit.size(chunks))
    nothing = value < fit.nothing_below and not _named(shown)
    value = max(value, NAMED) if named else value
    of_hits = {}
    for hit, cosine, coverage, rank in zip(shown, cosines.tolist(), coverages.tolist(), ranks, strict=True):
        fit = _usable(fitted, cosine)
        own = fit.hit(_known(cosine), coverage, 0.0, fit.size(chunks), rank)
        of_hits[hit.chunk.id] = min(own, NO_ANSWER * value if nothing else value)
    if named:
        of_hits[shown[0].chunk.id] = max(of_hits[shown[0].chunk.id], NAMED)
    return Confidence(value, nothing, of_hits)


def features(state: QueryState, reader: QuerySession, hits: Sequence[Hit]) -> tuple[Values, Values]:
    """Return cosines of hits, NaN without a vector, and their coverages."""
    ids = np.array([id_number(hit.found.id) for hit in hits], np.uint64)
    return _cosines(state, reader, hits, ids), _coverages(state, reader, hits, ids)


def _usable(fitted: Fit, cosine: float) -> Fit:
    """Return the fit for words where there is no vector."""
    return WORDS if np.isnan(cosine) else fitted


def _known(cosine: float) -> float:
    return 0.0 if np.isnan(cosine) else cosine


def _cosines(state: QueryState, reader: QuerySession, shown: Sequence[Hit], ids: Ids) -> Values:
    """Return cosines to the query, at least 0; NaN without a vector or without the dense leg."""
    fused = _fused_scores(state, shown, "dense")
    if fused is not None:
        return np.maximum(fused, 0.0)
    asked = next((each.vector for each in state.lists if each.vector is not None and each.variant == 0), None)
    return np.full(len(ids), np.nan) if asked is None else np.maximum(reader.score_vectors(asked, ids), 0.0)


def _coverages(state: QueryState, reader: QuerySession, shown: Sequence[Hit], ids: Ids) -> Values:
    """Return shares of the attainable BM25 in the better word leg, also if only the dense leg ran."""
    terms = {leg: of_leg for leg, of_leg in state.query.terms if of_leg}
    scores = {leg: fused for leg in terms if (fused := _fused_scores(state, shown, leg)) is not None}
    unknown = {leg: of_leg for leg, of_leg in terms.items() if leg not in scores}
    scores |= reader.score_words(unknown, ids) if unknown else {}
    attainable = reader.attainable_words(terms)
    shares = [scores[leg] / attainable[leg] for leg in terms if attainable[leg] > 0]
    best: Values = np.sqrt(np.max(shares, axis=0)) if shares else np.zeros(len(ids))
    return best


def _fused_scores(state: QueryState, shown: Sequence[Hit], leg: Leg) -> Values | None:
    """Return the scores of shown hits that fusion computed; None unless it has all of them."""
    rows = [hit.row for hit in shown if hit.row is not None]
    columns = () if state.fused is None else state.fused.columns
    column = next((each for each in columns if each.leg == leg and each.variant == 0), None)
    return None if column is None or len(rows) < len(shown) else column.scores[rows]


def _agreement(fused: Fused | None) -> float:
    """Return the agreement of the word legs."""
    legs: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
    columns = () if fused is None else [each for each in fused.columns if each.leg in legs and each.variant == 0]
    if len(columns) < len(legs):
        return 0.0
    first, second = ((column.ranks > 0) & (column.ranks <= AGREED) for column in columns)
    return float((first & second).sum()) / AGREED


def _named(hits: Sequence[Hit]) -> bool:
    return any(score.stage == "exact" for hit in hits for score in hit.scores)
