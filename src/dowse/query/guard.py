"""Guard of parts that a user injects: an exception or a hang in one of them costs its stage, never the query.

Dowse's own parts are not guarded, so that its bugs surface. This is the only module that catches every exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, TypeVar, cast

from dowse.errors import DowseError, UnavailableError
from dowse.ports import Candidate

TIMEOUT_S = 10.0  # of one call; chosen: people wait no longer
T = TypeVar("T")


def guarded(part: T, kind: str, *, timeout_s: float | None = TIMEOUT_S) -> T:
    """Return the part behind a guard; Dowse's own and missing parts as they are. `timeout_s` None: no thread."""
    own = type(part).__module__.partition(".")[0] == "dowse"
    return part if part is None or own else cast(T, PluginGuard(part, kind, timeout_s))


class PluginGuard:
    """Proxy of an injected object. All its failures become UnavailableError, which degrades a stage."""

    def __init__(self, part: Any, kind: str, timeout_s: float | None) -> None:
        self._part, self._kind, self._timeout_s = part, kind, timeout_s

    @property
    def model(self) -> str:
        return str(getattr(self._part, "model", type(self._part).__name__))

    def __getattr__(self, name: str) -> Any:
        if self._kind == "reranker" and name == "score" and not hasattr(self._part, "score"):
            return self._score
        found = getattr(self._part, name)
        return self._guarded(found) if callable(found) else found

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            def work() -> Any:
                try:
                    return method(*given, **named)
                except DowseError:
                    raise
                except Exception as err:
                    raise UnavailableError(f"{self._name} raised {type(err).__name__}: {err}") from err

            return work() if self._timeout_s is None else self._in_time(work)

        return call

    def _in_time(self, work: Callable[[], Any]) -> Any:
        """Run `work` in a thread, which is abandoned after the timeout."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as err:
                future.set_exception(err)
                if not isinstance(err, Exception):
                    raise

        Thread(target=run, name=f"dowse-{self._kind}", daemon=True).start()
        try:
            return future.result(self._timeout_s)
        except TimeoutError as err:
            if future.done():
                raise
            raise UnavailableError(f"{self._name} did not answer in {self._timeout_s:g} s") from err

    def _score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> list[float | None]:
        """Return the scores of a reranker that has `rerank(query, candidates, top_k)` only; None where it drops one."""
        found = self._guarded(self._part.rerank)(query, list(candidates), len(candidates))
        try:
            scores = dict(_scored(each) for each in found)
        except (TypeError, ValueError, KeyError, AttributeError) as err:
            raise UnavailableError(f"{self._name} returned results without id and score ({err})") from err
        return [scores.get(each.chunk.id) for each in candidates]

    @property
    def _name(self) -> str:
        return f"{self._kind} {type(self._part).__name__}"


_SCORES = ("reranked_score", "rerank_score", "score", "value")


def _scored(result: Any) -> tuple[str, float]:
    """Return id and score of a reranked result: a candidate, a mapping or any object."""
    if isinstance(result, Candidate):
        return result.chunk.id, float(result.value)
    of: Callable[[str], Any] = result.get if isinstance(result, Mapping) else partial(_attribute, result)
    found = next((score for name in _SCORES if (score := of(name)) is not None), None)
    return str(of("id") or of("chunk_id") or result["chunk_id"]), float(cast(float, found))


def _attribute(result: Any, name: str) -> Any:
    return getattr(result, name, None)
