"""Query pipeline: plan a request, build its waves of stages, run them over a query state, return the result.

This is the only module that catches the failure of a stage, and that measures and checks time. A new stage is one more
Step in `build`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import replace
from operator import attrgetter
from typing import cast

import msgspec

from dowse.errors import UnavailableError
from dowse.ports import Bm25, ChunkReader, Embedder, QuerySession, StoreReader
from dowse.query.answers.graph import AnswerFromGraph
from dowse.query.answers.metadata import AnswerMetadata, CiteEvidence
from dowse.query.assemble import NO_LLM, Assembly, Parts, Step, Wave, missing_links
from dowse.query.cache import CachedEmbedder, uncached
from dowse.query.exact_text import ExactText, literals
from dowse.query.guard import guarded
from dowse.query.plan.classify import LLM_TIMEOUT_S, Plan, plan
from dowse.query.plan.expand import MOST_VARIANTS, VARIANT_WEIGHT
from dowse.query.plan.graph_questions import graph_question
from dowse.query.plan.mentions import lone_name
from dowse.query.plan.operators import read_operators, unknown_values
from dowse.query.plan.profiles import Profile, named
from dowse.query.plan.validate import validated
from dowse.query.plugins import GivenServices, PluginLeg
from dowse.query.result import ResultContext, Staleness, coverage, coverage_note, result_of, unchecked
from dowse.query.session import SessionGuard, open_session
from dowse.query.stages.confidence import Judge
from dowse.query.stages.legs import Dense, Prepare, Words
from dowse.query.stages.neighbour_smoothing import NeighbourSmoothing
from dowse.query.stages.services import AddServices
from dowse.query.stages.state import Query, QueryState, Stage, StageTrace, Traced, Variant
from dowse.tokenizer import Tokenizer
from dowse.types import LEGS, Degradation, QueryRequest, QueryResult, QueryType

_NO_PARTS = Parts()
WORD_LEGS = LEGS[1:]


class Deadline(msgspec.Struct, frozen=True):
    """A moment after which optional steps are skipped."""

    limit_s: float
    at_s: float  # on the clock
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, limit_s: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(limit_s, clock() + limit_s, clock)

    def left_s(self) -> float:
        return max(self.at_s - self.clock(), 0.0)

    @property
    def note(self) -> str:
        return f"skipped after the deadline of {self.limit_s:g} s"


class PreparedQuery(msgspec.Struct, frozen=True, eq=False):
    """A planned query: all decisions before the first stage runs."""

    waves: tuple[Wave, ...]
    state: QueryState
    deadline: Deadline | None
    context: ResultContext
    profile: Profile  # adjusted to the request and the query type
    trace: tuple[StageTrace, ...] = ()


def answer(
    request: QueryRequest,
    reader: ChunkReader,
    embedder: Embedder | None,
    tokenizer: Tokenizer,
    executor: Executor | None = None,
    *,
    dense_note: str = "",
    parts: Parts | None = None,
) -> QueryResult:
    """Answer a query against one snapshot, with guards around injected parts.

    `dense_note` is the reason for a missing embedder. The executor runs the legs in parallel; it must not be the one
    that runs this call: they could wait for each other. A late leg continues in its thread, its result discarded.
    """
    parts = parts or _NO_PARTS
    parts = replace(
        parts,
        llm=guarded(parts.llm, "language model"),
        rerank_llm=guarded(parts.rerank_llm, "language model"),
        cross_encoder=guarded(parts.cross_encoder, "reranker"),
    )
    embedder = guarded(embedder, "embedder")
    ready = prepared(request, reader, embedder, tokenizer, dense_note=dense_note, parts=parts, only_shown=True)
    return finished(ready, executor)


def finished(ready: PreparedQuery, executor: Executor | None = None) -> QueryResult:
    """Run all waves and return the result."""
    traced = run(ready.waves, ready.state, executor, ready.deadline)
    return result_of(Traced(traced.state, (*ready.trace, *traced.trace)), ready.context)


def prepared(
    request: QueryRequest,
    reader: ChunkReader,
    embedder: Embedder | None,
    tokenizer: Tokenizer,
    *,
    dense_note: str = "",
    parts: Parts | None = None,
    only_shown: bool = False,
    early: bool = False,
    staleness: Staleness = unchecked,
) -> PreparedQuery:
    """Check and plan a request and build its stages, without searching.

    `only_shown`: the caller reads no hits beyond top_k, so their text is fetched only where a stage needs it. `early`:
    the caller shows the first top_k hits before the others are fetched.
    """
    started_s = time.perf_counter()
    parts = parts or _NO_PARTS
    profile = named(request.profile, parts.profiles)
    legs = tuple(leg.name for leg in parts.legs)
    where = validated(request, profile, legs)
    typed, (request, remarks) = request, read_operators(request)
    if request is not typed:
        where = validated(request, profile, legs)
    unknown = unknown_values(where, parts.values_of) if parts.values_of else ()
    said = tuple(Degradation("filter", each) for each in (*remarks, *unknown))
    profile = profile.adjusted(request)
    if not request.cache:
        parts = replace(parts, caches=None, llm=uncached(parts.llm), rerank_llm=uncached(parts.rerank_llm))
    if parts.open_cross_encoder is not None and "cross-encoder" in profile.rerank:
        try:
            parts = replace(parts, cross_encoder=parts.open_cross_encoder())
        except UnavailableError as err:
            parts = replace(parts, cross_encoder_note=str(err), cross_encoder_lost=True)
    deadline = None if request.deadline_s is None else Deadline.after(request.deadline_s)
    plan_of, notes = planned(request, profile, parts, deadline)
    profile = profile.for_type(plan_of.query_type, request)
    constants = Bm25(profile.k1, profile.b)
    own = type(reader).__module__.startswith("dowse.store.")  # has every port and needs no guard
    session = cast(StoreReader, reader).session(constants) if own else open_session(reader, constants)
    embedder, dense_notes = _dense(profile, session, embedder, dense_note, parts)
    model = None if embedder is None else embedder.model
    if embedder is not None and parts.caches is not None:
        embedder = CachedEmbedder(embedder, parts.caches.vectors)
    variants = tuple(Variant(each, VARIANT_WEIGHT) for each in plan_of.variants)
    mentions = plan_of.names or lone_name(request.text)
    state = QueryState(
        Query(request.text, profile.top_k, where, variants=variants, mentions=mentions),
        degraded=(*said, *notes, *dense_notes, *missing_links(profile, parts, asked=request.rerank is not None)),
        query_type=plan_of.query_type,
    )
    assembly = Assembly(profile, session, tokenizer, parts, (lambda: None) if deadline is None else deadline.left_s)
    shown = typed if typed is request else replace(request, text=typed.text)
    context = ResultContext(
        shown, profile.fusion, model, session, plan_of.answer_style, started_s, staleness, profile.group,
        expanded=profile.expand,
    )  # fmt: skip
    waves = build(assembly, request, embedder, state, only_shown=only_shown, early=early)
    return PreparedQuery(waves, state, deadline, context, profile, (StageTrace("plan", _ms_since(started_s)),))


def planned(
    request: QueryRequest, profile: Profile, parts: Parts, deadline: Deadline | None
) -> tuple[Plan, tuple[Degradation, ...]]:
    """Return the plan; without an answer of the language model, the plan of the rules and a note."""
    expand = MOST_VARIANTS if profile.expand else 0
    wants_type = profile.classify_by_llm and request.query_type is None
    by_rules = plan(request.text, query_type=request.query_type)
    if (not expand and not wants_type) or (profile.metadata and by_rules.query_type is QueryType.METADATA):
        return by_rules, ()  # metadata may answer without the cost of a language model
    if parts.llm is None:
        return by_rules, (Degradation("expand", NO_LLM),) if expand else ()
    # Half of the time, so that a slow model does not take the time of the legs.
    timeout_s = LLM_TIMEOUT_S if deadline is None else min(LLM_TIMEOUT_S, deadline.left_s() / 2)
    try:
        consulted = plan(
            request.text,
            llm=parts.llm,
            expand=expand,
            classify_by_llm=wants_type,
            timeout_s=timeout_s,
            query_type=request.query_type,
        )
    except UnavailableError as err:
        return by_rules, (Degradation("expand", str(err)),)
    return consulted, (Degradation("expand", consulted.note),) if consulted.note else ()


def _dense(
    profile: Profile, session: QuerySession, embedder: Embedder | None, dense_note: str, parts: Parts
) -> tuple[Embedder | None, tuple[Degradation, ...]]:
    if "dense" not in profile.legs or any(leg.name == "dense" for leg in parts.legs):
        return None, ()
    if isinstance(session, SessionGuard) and (reason := session.lacks("vector search")):
        return None, (Degradation("dense", reason),)
    if embedder is None:
        reason = dense_note or "no embedding model is in use; run `dowse models pull`, then `dowse index`"
        return None, (Degradation("dense", reason),)
    stats = session.stats
    if coverage(stats) == 1:
        return embedder, ()
    # Without a single vector the leg is down, not empty; and no model need be loaded to know that.
    return embedder if stats.vectors else None, (Degradation("dense", coverage_note(stats)),)


def build(
    assembly: Assembly,
    request: QueryRequest,
    embedder: Embedder | None,
    state: QueryState,
    *,
    only_shown: bool = False,
    early: bool = False,
) -> tuple[Wave, ...]:
    """Return all waves of the pipeline, in order."""
    profile, reader, tokenizer = assembly.profile, assembly.reader, assembly.tokenizer
    model = None if embedder is None else embedder.model
    plugged = [leg for leg in assembly.parts.legs if request.legs == LEGS or leg.name in request.legs]
    replaced = {leg.name for leg in plugged}
    legs: list[Stage] = [PluginLeg(leg, reader, profile.depth, leg.name) for leg in plugged]
    legs += [Words(reader, leg, profile.depth) for leg in profile.legs if leg in WORD_LEGS and leg not in replaced]
    if embedder is not None and "dense" in profile.legs:
        legs.insert(0, Dense(reader, embedder, profile.depth, reader.stats.dimension))
    smoothed = profile.fusion == "z" and (profile.hubness > 0 or profile.smoothing > 0)
    smoothing = NeighbourSmoothing(reader, profile.hubness, profile.smoothing, assembly.parts.fusion_kernel)
    graph = assembly.parts.service_graph
    services = AddServices(reader) if graph is None else GivenServices(graph)
    # Confidence is fitted to the scores of Dowse's own legs.
    judged = not plugged or (len(legs) > len(plugged) and not replaced & set(LEGS))
    about_documents = profile.metadata and state.query_type is QueryType.METADATA
    relation = None if about_documents else graph_question(state.query.text)
    later = tuple(assembly.later())
    hydrates = assembly.hydrate(state.query, later, only_shown=only_shown and not about_documents, early=early)
    from_metadata = Step(AnswerMetadata(reader, assembly.parts.documents, tokenizer), optional=True)
    exact_text = Step(ExactText(reader), optional=True, even_late=True)
    waves: tuple[Wave, ...] = (
        ((from_metadata,) if about_documents else ()),
        (Step(Prepare(tokenizer)),),  # required: without terms the answer would be wrong, not degraded
        tuple(Step(leg, optional=True, apart=bool(plugged)) for leg in legs),
        (Step(assembly.fuse(), optional=not request.strict, even_late=True),),
        ((Step(smoothing, optional=True, even_late=True),) if smoothed else ()),
        *((Step(hydrate, optional=True, even_late=True),) for hydrate in hydrates),
        *later,
        ((exact_text,) if profile.exact and literals(state.query.text) else ()),
        ((Step(CiteEvidence(reader), optional=True, even_late=True, when_answered=True),) if about_documents else ()),
        ((Step(services, optional=True, when_answered=True),) if profile.expand_graph else ()),
        ((Step(Judge(reader, model), optional=True, even_late=True),) if judged else ()),
        # Last: once there is an answer, no other stage runs, and here the hits are wanted, too.
        ((Step(AnswerFromGraph(reader, tokenizer, relation), optional=True),) if relation else ()),
    )
    names = [step.stage.name for wave in waves for step in wave]
    if len(set(names)) < len(names):
        raise ValueError(f"stage names are not unique: {names}")
    return tuple(wave for wave in waves if wave)


def run(waves: Sequence[Wave], state: QueryState, executor: Executor | None, deadline: Deadline | None) -> Traced:
    return [Traced(state), *iter_waves(waves, state, executor, deadline)][-1]


def iter_waves(
    waves: Sequence[Wave], state: QueryState, executor: Executor | None, deadline: Deadline | None
) -> Iterator[Traced]:
    """Yield the state after each wave, so that a stream can show early hits while later stages work."""
    trace: tuple[StageTrace, ...] = ()
    for wave in waves:
        if state.metadata_answer is not None and not all(step.when_answered for step in wave):
            continue
        attempts = _attempt_all(wave, state, executor, deadline)
        state = _join(state, attempts)
        trace += tuple(attempt.trace for attempt in attempts)
        yield Traced(state, trace)


class _Attempt(msgspec.Struct, frozen=True, eq=False):
    after: QueryState
    trace: StageTrace
    skipped: str | None = None  # why


def _attempt_all(wave: Wave, state: QueryState, executor: Executor | None, deadline: Deadline | None) -> list[_Attempt]:
    if executor is None or len(wave) == 1:
        return [_attempt(step, state, deadline) for step in wave]
    if deadline is None and not wave[0].apart:
        # Only the first leg runs in a thread: it embeds the question while this thread searches words. A thread for
        # each leg costs more than the leg (a switch of the interpreter's lock each).
        first = executor.submit(_attempt, wave[0], state, deadline)
        others = [_attempt(step, state, deadline) for step in wave[1:]]
        return [first.result(), *others]
    futures = [executor.submit(_attempt, step, state, deadline) for step in wave]
    wait(futures, timeout=None if deadline is None else deadline.left_s())
    attempts = []
    for step, future in zip(wave, futures, strict=True):
        if deadline is None or future.done() or not step.optional or step.even_late:
            attempts.append(future.result())
        else:
            future.cancel()
            attempts.append(_Attempt(state, StageTrace(step.stage.name, 1000 * deadline.limit_s), deadline.note))
    return attempts


def _attempt(step: Step, state: QueryState, deadline: Deadline | None) -> _Attempt:
    name = step.stage.name
    if step.optional and not step.even_late and deadline is not None and deadline.left_s() <= 0:
        return _Attempt(state, StageTrace(name, 0.0), deadline.note)
    started_s = time.perf_counter()
    try:
        after = step.stage(state)
    except UnavailableError as err:
        if not step.optional:
            raise
        return _Attempt(state, StageTrace(name, _ms_since(started_s)), str(err))
    return _Attempt(after, StageTrace(name, _ms_since(started_s), after.brought_since(state)))


def _ms_since(started_s: float) -> float:
    return 1000 * (time.perf_counter() - started_s)


def _join(state: QueryState, attempts: list[_Attempt]) -> QueryState:
    if len(attempts) == 1:
        after = attempts[0].after
    else:
        known, added = len(state.lists), list(state.lists)
        for each in attempts:
            if each.after.lists[:known] != state.lists or _others(each.after) != _others(state):
                raise TypeError(f"stage {each.trace.stage!r} ran in parallel and may only add lists")
            added += each.after.lists[known:]
        after = state.changed(lists=tuple(added))
    lost = tuple(Degradation(each.trace.stage, each.skipped) for each in attempts if each.skipped is not None)
    return after.changed(degraded=(*after.degraded, *lost)) if lost else after


_others = attrgetter(*(name for name in QueryState.__struct_fields__ if name != "lists"))
