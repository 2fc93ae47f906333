"""The path of a question: a request goes in, waves of stages run over a slate, a result comes out.

This is the only place where a stage's failure is caught, and where time is measured and checked. A new stage
is one more Step in `build`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from threading import Thread

import msgspec

from dowse.errors import UnavailableError
from dowse.filters import Filter
from dowse.ports import STANDARD, Bm25, Embedder, StoreReader, StoreStats
from dowse.query.assemble import NO_LLM, Assembly, Parts, Step, Wave, missing_links
from dowse.query.cache import CachedEmbedder
from dowse.query.plan.classify import LLM_TIMEOUT_S, Plan, plan, steered
from dowse.query.plan.expand import MOST_VARIANTS, VARIANT_WEIGHT
from dowse.query.plan.profiles import Profile, named
from dowse.query.plan.validate import validated
from dowse.query.result import Asked, coverage, coverage_note, result_of
from dowse.query.stages.confidence import Judge
from dowse.query.stages.legs import Dense, Prepare, Words
from dowse.query.stages.metadata_answers import AnswerMetadata, CiteEvidence
from dowse.query.stages.services import AddServices
from dowse.query.stages.state import Query, Ranking, Slate, Stage, StageTrace, Traced, Variant
from dowse.tokenizer import Tokenizer
from dowse.types import Degradation, QueryRequest, QueryResult, QueryType

_NO_PARTS = Parts()


@dataclass(frozen=True)
class Deadline:
    """A moment after which optional work is skipped."""

    limit_s: float
    at_s: float  # on the clock
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, limit_s: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(limit_s, clock() + limit_s, clock)

    @property
    def left_s(self) -> float:
        return max(self.at_s - self.clock(), 0.0)

    def left(self) -> float:
        return self.left_s

    @property
    def note(self) -> str:
        return f"no time left of the deadline of {self.limit_s:g} s"


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is settled before the first stage runs."""

    waves: tuple[Wave, ...]
    slate: Slate
    deadline: Deadline | None
    asked: Asked
    profile: Profile  # with the request's own values and the question's type in it
    trace: tuple[StageTrace, ...] = ()


def answer(
    request: QueryRequest,
    reader: StoreReader,
    embedder: Embedder | None,
    tokenizer: Tokenizer,
    executor: Executor | None = None,
    *,
    dense_note: str = "",
    parts: Parts | None = None,
) -> QueryResult:
    """Ask one moment of a store. `dense_note` says why there is no embedder, where there is none.

    The executor runs the legs side by side; it must not be the one this call itself runs on, or both may wait
    for each other. A leg that misses the deadline goes on in its thread and its answer is thrown away.
    """
    ready = prepared(request, reader, embedder, tokenizer, dense_note=dense_note, parts=parts, only_shown=True)
    return finished(ready, executor)


def finished(ready: Prepared, executor: Executor | None = None) -> QueryResult:
    """All waves run, and the result."""
    traced = run(ready.waves, ready.slate, executor, ready.deadline)
    return result_of(Traced(traced.slate, (*ready.trace, *traced.trace)), ready.asked)


def prepared(
    request: QueryRequest,
    reader: StoreReader,
    embedder: Embedder | None,
    tokenizer: Tokenizer,
    *,
    dense_note: str = "",
    parts: Parts | None = None,
    only_shown: bool = False,
    early: bool = False,
) -> Prepared:
    """The request is checked and planned, and its path is built; nothing has been searched yet.

    `only_shown`: nobody will look at hits beyond top_k, so their text is fetched only where a stage needs it. `early`:
    those up to top_k are wanted before the others.
    """
    started_s = time.perf_counter()
    parts = _without_caches(parts or _NO_PARTS, request)
    where = validated(request, parts.profiles)
    profile = named(request.profile, parts.profiles).adjusted(request)
    deadline = None if request.deadline_s is None else Deadline.after(request.deadline_s)
    planned, notes = _planned(request, profile, parts, deadline)
    profile = profile.for_type(planned.query_type, request)
    if profile.steer and request.alpha is None:
        profile = replace(profile, alpha=steered(profile.alpha, planned))
    constants = Bm25(profile.k1, profile.b)
    if constants != STANDARD:
        reader = reader.with_bm25(constants)
    usable, dense_notes = _dense(profile, reader.stats, embedder, dense_note)
    if usable is not None and parts.caches is not None:
        usable = CachedEmbedder(usable, parts.caches.vectors)
    slate = Slate(
        _query(request.text, where, planned, profile),
        degraded=(*notes, *dense_notes, *missing_links(profile, parts, asked=request.rerank is not None)),
        query_type=planned.query_type,
    )
    assembly = Assembly(profile, reader, tokenizer, parts, (lambda: None) if deadline is None else deadline.left)
    model = None if usable is None else usable.model
    asked = Asked(request, profile.fusion, model, reader, tokenizer, planned.answer_style, started_s)
    waves = build(assembly, request, usable, slate, only_shown=only_shown, early=early)
    return Prepared(waves, slate, deadline, asked, profile, (StageTrace("plan", _ms_since(started_s)),))


def _without_caches(parts: Parts, request: QueryRequest) -> Parts:
    return parts if request.cache else replace(parts, caches=None)


def _query(text: str, where: Filter, planned: Plan, profile: Profile) -> Query:
    variants = tuple(Variant(each, VARIANT_WEIGHT) for each in planned.variants)
    return Query(text, profile.top_k, where, variants=variants, mentions=planned.names)


def _planned(
    request: QueryRequest, profile: Profile, parts: Parts, deadline: Deadline | None
) -> tuple[Plan, tuple[Degradation, ...]]:
    """What the question wants; a language model that fails costs its part only."""
    expand = MOST_VARIANTS if profile.expand else 0
    wants_type = profile.classify_by_llm and request.query_type is None
    by_rules = plan(request.text, query_type=request.query_type)
    if not expand and not wants_type:
        return by_rules, ()
    if parts.llm is None:
        return by_rules, (Degradation("expand", NO_LLM),) if expand else ()
    # Half of the time: a slow model costs its part of the answer, and not the legs'.
    timeout_s = LLM_TIMEOUT_S if deadline is None else min(LLM_TIMEOUT_S, deadline.left_s / 2)
    try:
        planned = plan(
            request.text,
            llm=parts.llm,
            expand=expand,
            classify_by_llm=wants_type,
            timeout_s=timeout_s,
            query_type=request.query_type,
        )
    except UnavailableError as err:
        return by_rules, (Degradation("expand", str(err)),)
    return planned, (Degradation("expand", planned.note),) if planned.note else ()


def _dense(
    profile: Profile, stats: StoreStats, embedder: Embedder | None, dense_note: str
) -> tuple[Embedder | None, tuple[Degradation, ...]]:
    """The embedder if the dense leg can use it, and what is to be said about that leg beforehand."""
    if "dense" not in profile.legs:
        return None, ()
    if embedder is None:
        reason = dense_note or "no embedding model is in use; run `dowse models pull`, then `dowse index`"
        return None, (Degradation("dense", reason),)
    if coverage(stats) == 1:
        return embedder, ()
    # Without a single vector the leg is down and not empty-handed, and no model need be loaded to know that.
    return embedder if stats.vectors else None, (Degradation("dense", coverage_note(stats)),)


def build(
    assembly: Assembly,
    request: QueryRequest,
    embedder: Embedder | None,
    slate: Slate,
    *,
    only_shown: bool = False,
    early: bool = False,
) -> tuple[Wave, ...]:
    """The whole path, readable as a table of contents."""
    profile, reader, tokenizer = assembly.profile, assembly.reader, assembly.tokenizer
    legs: list[Stage] = [Words(reader, leg, profile.depth) for leg in profile.legs if leg != "dense"]
    if embedder is not None and "dense" in profile.legs:
        legs.insert(0, Dense(reader, embedder, profile.depth))
    about_documents = profile.metadata and slate.query_type is QueryType.METADATA
    later = tuple(assembly.later())
    hydrates = assembly.hydrate(slate.query, later, only_shown=only_shown and not about_documents, early=early)
    waves: tuple[Wave, ...] = (
        ((Step(_about_documents(assembly), optional=True),) if about_documents else ()),
        (Step(Prepare(tokenizer)),),  # required: without terms the answer would be wrong, not degraded
        tuple(Step(leg, optional=True) for leg in legs),
        (Step(assembly.fuse(), optional=not request.strict, even_late=True),),
        assembly.company(),
        *((Step(hydrate),) for hydrate in hydrates),
        *later,
        ((Step(CiteEvidence(reader), optional=True, even_late=True),) if about_documents else ()),
        ((Step(AddServices(reader), optional=True),) if profile.expand_graph else ()),
        (Step(Judge(reader, None if embedder is None else embedder.model), optional=True, even_late=True),),
    )
    names = [step.stage.name for wave in waves for step in wave]
    if len(set(names)) < len(names):
        raise ValueError(f"stage names are not unique: {names}")
    return tuple(wave for wave in waves if wave)


def _about_documents(assembly: Assembly) -> Stage:
    return AnswerMetadata(assembly.reader, assembly.parts.documents, assembly.tokenizer)


def run(waves: Sequence[Wave], slate: Slate, executor: Executor | None, deadline: Deadline | None) -> Traced:
    """All waves, one after the other."""
    traced = Traced(slate)
    for traced in walk(waves, slate, executor, deadline):  # noqa: B007  the last one is the answer
        pass
    return traced


def walk(waves: Sequence[Wave], slate: Slate, executor: Executor | None, deadline: Deadline | None) -> Iterator[Traced]:
    """What is known after each wave, so that a stream can show early hits while later stages work."""
    trace: tuple[StageTrace, ...] = ()
    for wave in waves:
        attempts = _attempt_all(wave, slate, executor, deadline)
        slate = _join(slate, attempts)
        trace += tuple(attempt.trace for attempt in attempts)
        yield Traced(slate, trace)


class _Attempt(msgspec.Struct, frozen=True, eq=False):
    after: Slate
    trace: StageTrace
    skipped: str | None = None  # why


def _attempt_all(wave: Wave, slate: Slate, executor: Executor | None, deadline: Deadline | None) -> list[_Attempt]:
    if deadline is not None and len(wave) == 1 and wave[0].may_hang and deadline.left_s > 0:
        return [_attempt_aside(wave[0], slate, deadline)]
    if executor is None or len(wave) == 1:
        return [_attempt(step, slate, deadline) for step in wave]
    if deadline is None:
        # Only the first goes aside: it embeds the question, and the words are done by then. Handing all of them to
        # threads costs more than they do (a switch of the interpreter's lock each).
        first = executor.submit(_attempt, wave[0], slate, deadline)
        others = [_attempt(step, slate, deadline) for step in wave[1:]]
        return [first.result(), *others]
    futures = [executor.submit(_attempt, step, slate, deadline) for step in wave]
    wait(futures, timeout=None if deadline is None else deadline.left_s)
    return [_collect(step, future, slate, deadline) for step, future in zip(wave, futures, strict=True)]


def _attempt_aside(step: Step, slate: Slate, deadline: Deadline) -> _Attempt:
    """In a thread of its own, so that what hangs outside costs the query its deadline and no more.

    Not in the executor: a few that hang would take all its threads, and the legs of the next query with them.
    """
    future: Future[_Attempt] = Future()
    future.set_running_or_notify_cancel()  # it may come late, but it cannot be called off

    def work() -> None:
        try:
            future.set_result(_attempt(step, slate, deadline))
        except BaseException as err:
            future.set_exception(err)  # raised where the result is asked for
            if not isinstance(err, Exception):
                raise

    Thread(target=work, name=f"dowse-{step.stage.name}", daemon=True).start()
    wait([future], timeout=deadline.left_s)
    return _collect(step, future, slate, deadline)


def _collect(step: Step, future: Future[_Attempt], slate: Slate, deadline: Deadline | None) -> _Attempt:
    if deadline is None or future.done() or not step.optional or step.even_late:
        return future.result()
    future.cancel()
    return _Attempt(slate, StageTrace(step.stage.name, 1000 * deadline.limit_s), deadline.note)


def _attempt(step: Step, slate: Slate, deadline: Deadline | None) -> _Attempt:
    name = step.stage.name
    if step.optional and not step.even_late and deadline is not None and deadline.left_s <= 0:
        return _Attempt(slate, StageTrace(name, 0.0), deadline.note)
    started_s = time.perf_counter()
    try:
        after = step.stage(slate)
    except UnavailableError as err:
        if not step.optional:
            raise
        return _Attempt(slate, StageTrace(name, _ms_since(started_s)), str(err))
    return _Attempt(after, StageTrace(name, _ms_since(started_s), after.brought_since(slate)))


def _ms_since(started_s: float) -> float:
    return 1000 * (time.perf_counter() - started_s)


def _join(slate: Slate, attempts: list[_Attempt]) -> Slate:
    """One slate from those that ran side by side."""
    if len(attempts) == 1:
        after = attempts[0].after
    else:
        added = [each for attempt in attempts for each in _added_lists(slate, attempt)]
        after = slate.changed(lists=(*slate.lists, *added))
    lost = tuple(Degradation(each.trace.stage, each.skipped) for each in attempts if each.skipped is not None)
    return after.changed(degraded=(*after.degraded, *lost)) if lost else after


_others = itemgetter(*(each.name for each in fields(Slate) if each.name != "lists"))


def _added_lists(slate: Slate, attempt: _Attempt) -> Sequence[Ranking]:
    after, known = attempt.after, len(slate.lists)
    if after.lists[:known] != slate.lists or _others(vars(after)) != _others(vars(slate)):
        raise TypeError(f"stage {attempt.trace.stage!r} ran beside others and may only add lists")
    return after.lists[known:]
