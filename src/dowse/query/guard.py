"""Guard of parts that a user injects: an exception, a hang or nonsense in one of them costs its stage, never the query.

Dowse's own parts are not guarded, so that its bugs surface. This is the only module that catches every exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import cached_property
from inspect import getattr_static
from math import exp, isfinite
from threading import Thread
from typing import Any, TypeVar, cast

import numpy as np

from dowse.errors import DowseError, UnavailableError
from dowse.ports import Candidate, Matrix
from dowse.query.rows import CandidateRow, rows_of
from dowse.types import Role

TIMEOUT_S = 10.0  # of one call; chosen: people wait no longer
_STEEPEST = 700.0  # e^710 is beyond a float
T = TypeVar("T")


def is_own(part: object) -> bool:
    return type(part).__module__.startswith("dowse.")


def guarded(part: T, kind: str) -> T:
    """Return the part behind a guard; Dowse's own and missing parts as they are."""
    return part if part is None or is_own(part) else cast(T, _GUARDS.get(kind, PluginGuard)(part, kind))


def in_time(work: Callable[[], T], name: str, timeout_s: float | None = None) -> T:
    """Return the value of `work`, run in a thread that is abandoned after the timeout; else raise UnavailableError."""
    limit_s = TIMEOUT_S if timeout_s is None else min(timeout_s, TIMEOUT_S)
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except DowseError as err:
            future.set_exception(err)
        except BaseException as err:
            failure = UnavailableError(f"{name} raised {type(err).__name__}: {err}")
            failure.__cause__ = err
            future.set_exception(failure)
            if not isinstance(err, Exception):
                raise

    Thread(target=copy_context().run, args=(run,), name=f"dowse-{name}", daemon=True).start()
    try:
        return future.result(limit_s)
    except TimeoutError as err:
        raise UnavailableError(f"{name} did not answer in {limit_s:.3g} s") from err


class PluginGuard:
    """Proxy of an injected object. All its failures become UnavailableError, which degrades a stage."""

    def __init__(self, part: Any, kind: str) -> None:
        self._part, self._name = part, f"{kind} {type(part).__name__}"

    @cached_property
    def model(self) -> str:
        return str(self._attribute("model", type(self._part).__name__))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found):
            return found
        return lambda *given, **named: self._call(lambda: found(*given, **named))

    def _attribute(self, name: str, default: Any) -> Any:
        """Return an attribute; a stored string or number without a thread, because reading it runs no foreign code."""
        stored, kind = getattr_static(self._part, name, None), cast(Any, type(self._part))
        if type(stored) in (str, int) and kind.__getattribute__ is object.__getattribute__:
            return stored
        return self._call(lambda: getattr(self._part, name, default))

    def _call(self, work: Callable[[], T], timeout_s: float | None = None) -> T:
        return in_time(work, self._name, timeout_s)


class LLMGuard(PluginGuard):
    """Guard of a language model, which has the time that its caller gives it."""

    def complete_json(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, *, max_tokens: int) -> Any:
        ask = self._part.complete_json
        return self._call(lambda: ask(prompt, schema, timeout_s, max_tokens=max_tokens), timeout_s)


class EmbedderGuard(PluginGuard):
    """Guard of an embedder with `embed(texts, role=…)` or `embed_query(text)`."""

    @cached_property
    def dimension(self) -> int | None:
        found = self._attribute("dimension", None)
        return found if isinstance(found, int) else None

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        """Return the vectors, or raise UnavailableError for anything that is no matrix of finite rows."""
        try:
            vectors = np.asarray(self._call(lambda: self._embedded(texts, role)), np.float32)
            right = vectors.ndim == 2 and len(vectors) == len(texts) and bool(np.isfinite(vectors).all())
        except (TypeError, ValueError):  # text, None, rows of different lengths
            right = False
        lengths: Matrix = np.linalg.norm(vectors, axis=1, keepdims=True) if right else np.zeros((1, 1), np.float32)
        if not lengths.all() or self.dimension not in (None, vectors.shape[1]):
            raise UnavailableError(f"{self._name} returned no finite vectors of its dimension")
        return vectors / lengths

    def _embedded(self, texts: Sequence[str], role: Role) -> Any:
        if hasattr(self._part, "embed_query"):
            return [self._part.embed_query(text) for text in texts]
        return self._part.embed(texts, role=role)


class RerankerGuard(PluginGuard):
    """Guard of a reranker with `score(query, candidates)` or `rerank(query, candidates, top_k)`."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # of a reranker, nothing else is used

    @property
    def drops(self) -> bool:
        """Whether it leaves out hits on purpose: those that `rerank` does not return."""
        return not hasattr(self._part, "score")

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> list[float | None]:
        if not self.drops:
            score = self._part.score
            return self._unit(self._call(lambda: list(score(query, candidates, timeout_s=timeout_s)), timeout_s))
        rows = [CandidateRow(each) for each in candidates]
        found = self._call(lambda: rows_of(self._part.rerank(query, rows, len(rows)), self._name), timeout_s)
        scores = {each.id: each.score for each in found}
        known = self._unit([scores.get(each.chunk.id) for each in candidates])
        if all(score is None for score in known):
            raise UnavailableError(f"{self._name} returned none of {len(candidates)} candidates")
        return known

    def _unit(self, scores: list[Any]) -> list[float | None]:
        """Return scores in [0,1]: those of a model's other scale by 1/(1 + e^−score), which keeps their order."""
        if any(type(each) is bool or not isinstance(each, int | float | np.number | None) for each in scores):
            raise UnavailableError(f"{self._name} returned scores that are no numbers")
        known = [None if each is None else float(each) for each in scores]
        if not all(each is None or isfinite(each) for each in known):
            raise UnavailableError(f"{self._name} returned a score that is not finite")
        if all(each is None or 0 <= each <= 1 for each in known):
            return known
        return [None if each is None else 1 / (1 + exp(min(-each, _STEEPEST))) for each in known]


_GUARDS: dict[str, type[PluginGuard]] = {
    "embedder": EmbedderGuard,
    "language model": LLMGuard,
    "reranker": RerankerGuard,
}
