"""The whole path over a real reference store: questions go in, results, notes and traces are checked."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import ModelUnavailableError, NoRecallError, UnavailableError
from dowse.filters import Filter
from dowse.identity import chunk_id, embedded_text, id_number, text_hash
from dowse.ports import STANDARD, Bm25, Found, Matrix, StoreReader, Vector
from dowse.query.assemble import Assembly, Parts, Step
from dowse.query.pipeline import Deadline, answer, build, iter_waves, run
from dowse.query.plan.profiles import named
from dowse.query.stages.state import Query, QueryState
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import (
    LEGS,
    Chunk,
    ChunkId,
    Degradation,
    Document,
    Fusion,
    Leg,
    QueryRequest,
    QueryResult,
    Role,
    ScoredChunk,
)  # fmt: skip
from values import replace

DIMENSION = 64
WORD_LEGS: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
TEXTS = (
    "def retry_with_backoff(call): sleep twice as long after each failure",
    "Runbook: when the queue is full, restart the consumer and page the owner",
    "class HttpClient: retries a failed call three times with growing pauses",
    "The consumer group rebalances when a pod restarts",
    "ADR 7: we chose idempotent writes over distributed locks",
    "func parseHTTPResponse(body []byte) error",
    "Backoff doubles the pause; jitter spreads the retries of many clients",
    "deploy the gateway with helm, then watch the rollout",
    "select id from orders where state = 'failed'",
    "Paging the owner of a service happens through the on-call schedule",
    "retry budget: at most ten percent of calls may be retries",
    "locks are leased for thirty seconds and renewed by a heartbeat",
)
DOWN = UnavailableError("the part is down")
QUESTION = "how do failed calls retry with backoff"


@dataclass(frozen=True)
class TrigramEmbedder:
    """Hashed letter trigrams: no meaning, but able to rank."""

    model: str = "trigrams"
    dimension: int = DIMENSION

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        rows = np.array([[1e-3] * DIMENSION for _ in texts], np.float32)
        for row, text in zip(rows, texts, strict=True):
            for at in range(len(text) - 2):
                code = int.from_bytes(blake2b(text[at : at + 3].lower().encode(), digest_size=4).digest())
                row[code % DIMENSION] += 1 if code >> 31 else -1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


EMBEDDER = TrigramEmbedder()


def chunk_of(text: str, at: int) -> Chunk:
    return Chunk(
        id=chunk_id("notes/all.md", "chunk", text, at),
        document_id="notes",
        text=text,
        corpus_type="CODE_LOGIC" if "(" in text else "DOC_PAGE",
        source_uri="notes/all.md",
        content_hash=text_hash(text),
    )


def reader_of(texts: Sequence[str], embedded: int | None = None) -> StoreReader:
    """A store of one document; only the first `embedded` chunks have a vector."""
    chunks = tuple(chunk_of(text, at) for at, text in enumerate(texts))
    store = MemoryStore()
    store.put([Document("notes", "notes", "all.md", "Notes", "hash", chunks)])
    store.publish()
    store.use_model(EMBEDDER.model, DIMENSION)
    first = chunks if embedded is None else chunks[:embedded]
    if first:
        vectors = EMBEDDER.embed([embedded_text(each) for each in first], role="chunk")
        store.put_vectors([each.content_hash for each in first], vectors)
    store.publish()
    return store.reader()


@pytest.fixture(scope="module")
def reader() -> StoreReader:
    return reader_of(TEXTS)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


def ask(reader: StoreReader, text: str = QUESTION, **fields: Any) -> QueryResult:
    return answer(QueryRequest(text, **fields), reader, EMBEDDER, Tokenizer(), None)


def ids_of(result: QueryResult) -> list[ChunkId]:
    return [each.id for each in result.chunks]


@dataclass(frozen=True)
class Broken:
    """A reader whose named methods are down; the rest is real."""

    inner: StoreReader
    down: tuple[str, ...]
    error: Exception

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def session(self, constants: Bm25 = STANDARD) -> Any:
        return self

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        if leg in self.down:
            raise self.error
        return self.inner.search_words(leg, terms, k, where)

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        if "dense" in self.down:
            raise self.error
        return self.inner.search_vectors(vector, k, where)


# The answer itself.


def exact_scores(reader: StoreReader, text: str) -> dict[Leg, dict[ChunkId, float]]:
    """Every chunk's score in every leg, asked of the store one list at a time."""
    terms = Tokenizer().query(text)
    vector = EMBEDDER.embed([text], role="query")[0]
    found = {leg: reader.search_words(leg, terms[leg], 100, ()) for leg in WORD_LEGS}
    found = {"dense": reader.search_vectors(vector, 100, ()), **found}
    return {
        leg: {f"{each:016x}": score for each, score in zip(of.ids.tolist(), of.scores.tolist(), strict=True)}
        for leg, of in found.items()
    }


def plain_z(scores: list[float], exponent: float) -> list[float]:
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in scores) / len(scores))
    zs = [(each - mean) / deviation if deviation >= 1e-6 else 0.0 for each in scores]
    return [math.copysign(abs(z) ** exponent, z) for z in zs]


def best_of(scores: Mapping[ChunkId, float], k: int) -> list[ChunkId]:
    return sorted(scores, key=lambda each: (-scores[each], each))[:k]


@pytest.mark.parametrize("depth", [100, 3])
@pytest.mark.parametrize("text", [QUESTION, "locks", "page the owner of the consumer"])
def test_default_answer_without_smoothing_is_the_formula_over_the_union(
    reader: StoreReader, text: str, depth: int
) -> None:
    scores = exact_scores(reader, text)
    union = sorted({each for of in scores.values() for each in best_of(of, depth)})
    columns = {leg: plain_z([of.get(each, 0.0) for each in union], 2) for leg, of in scores.items()}
    sums = {
        each: 0.7 * columns["dense"][at] + 0.15 * columns["bm25_code"][at] + 0.15 * columns["bm25_nlp"][at]
        for at, each in enumerate(union)
    }
    best = best_of(sums, 10)
    alone = Parts(profiles=(replace(named("default"), hubness=0.0, smoothing=0.0),))
    result = answer(QueryRequest(text, depth=depth), reader, EMBEDDER, Tokenizer(), parts=alone)
    assert ids_of(result) == best
    assert [each.fusion_score for each in result.chunks] == pytest.approx(
        [1 / (1 + math.exp(-sums[each])) for each in best], abs=1e-5
    )


def test_a_chunk_outside_a_leg_has_its_exact_score_but_no_rank(reader: StoreReader) -> None:
    scores = exact_scores(reader, QUESTION)
    result = ask(reader, depth=2)
    outside = [each for each in result.chunks if each.id not in best_of(scores["dense"], 2)]
    assert outside
    for each in outside:
        assert each.dense_score == pytest.approx(scores["dense"][each.id], abs=1e-6)
        assert each.scores[0].rank == 0
        assert each.scores[0].why.endswith("not among the leg's best 2")


def test_flat_fields_hold_the_exact_score_of_every_leg(reader: StoreReader) -> None:
    scores = exact_scores(reader, QUESTION)
    for each in ask(reader).chunks:
        assert each.dense_score == pytest.approx(scores["dense"][each.id], abs=1e-6)  # float32 sums
        assert each.bm25_code_score == pytest.approx(scores["bm25_code"].get(each.id, 0.0))
        assert each.bm25_nlp_score == pytest.approx(scores["bm25_nlp"].get(each.id, 0.0))
        assert each.final_score == each.fusion_score
        assert each.rrf_score is None


@pytest.mark.parametrize("depth", [100, 3])
def test_rrf_sums_the_ranks_and_keeps_the_raw_score(reader: StoreReader, depth: int) -> None:
    scores = exact_scores(reader, QUESTION)
    ranks = {leg: {each: rank for rank, each in enumerate(best_of(of, depth), start=1)} for leg, of in scores.items()}
    result = ask(reader, fusion="rrf", weights=tuple((leg, 1.0) for leg in LEGS), depth=depth)
    for each in result.chunks:
        raw = sum(1 / (60 + of[each.id]) for of in ranks.values() if each.id in of)
        assert each.rrf_score == pytest.approx(raw)
        assert each.fusion_score == pytest.approx(raw * (60 + 1) / 3)


def test_minmax_gives_the_best_of_every_leg_one(reader: StoreReader) -> None:
    result = ask(reader_of(["alpha beta", "gamma", "delta"]), "alpha beta", fusion="minmax")
    assert result.chunks[0].text == "alpha beta"
    assert result.chunks[0].fusion_score == pytest.approx(1)


@pytest.mark.parametrize("fusion", get_args(Fusion))
def test_alpha_one_is_the_order_of_the_cosines_and_zero_has_no_dense_score(reader: StoreReader, fusion: Fusion) -> None:
    dense = exact_scores(reader, QUESTION)["dense"]
    pure = ask(reader, alpha=1.0, fusion=fusion)
    assert ids_of(pure) == best_of(dense, 10)
    words = ask(reader, alpha=0.0, fusion=fusion)
    assert {each.dense_score for each in words.chunks} == {None}
    assert ids_of(words) == ids_of(ask(reader, legs=WORD_LEGS, fusion=fusion))


def test_words_only_search_for_an_unknown_word_finds_nothing(reader: StoreReader) -> None:
    result = ask(reader, "xyzzy", alpha=0.0)
    assert (result.chunks, result.nothing_found, result.degraded) == ((), True, ())


def test_a_filter_holds_in_every_leg(reader: StoreReader) -> None:
    result = ask(reader, corpus_filter=("CODE",))
    assert {each.corpus_type for each in result.chunks} == {"CODE_LOGIC"}
    assert len(result.chunks) == sum("(" in text for text in TEXTS)


def test_top_k_beyond_the_corpus_returns_all_of_it(reader: StoreReader) -> None:
    assert len(ask(reader, top_k=10_000).chunks) == len(TEXTS)


def test_a_question_without_a_term_is_answered_by_the_dense_leg(reader: StoreReader) -> None:
    result = ask(reader, "???")
    assert len(result.chunks) == 10
    assert dict(result.query_metadata.counts)["bm25_nlp"] == 0


def test_an_empty_store_has_an_honest_nothing() -> None:
    result = ask(reader_of([]))
    assert (result.chunks, result.nothing_found, result.degraded) == ((), True, ())
    assert result.query_metadata.embedding_coverage == 1


def test_legs_side_by_side_answer_as_they_do_in_turn(reader: StoreReader, pool: ThreadPoolExecutor) -> None:
    request = QueryRequest(QUESTION, deadline_s=60.0)
    assert answer(request, reader, EMBEDDER, Tokenizer(), pool).chunks == ask(reader).chunks


@pytest.mark.parametrize("fusion", get_args(Fusion))
def test_the_order_in_which_legs_are_named_changes_nothing(reader: StoreReader, fusion: Fusion) -> None:
    shuffled = ask(reader, fusion=fusion, legs=("bm25_nlp", "dense", "bm25_code"))
    assert shuffled.chunks == ask(reader, fusion=fusion).chunks


WORDS = ("retry", "queue", "lock", "parseBody", "the", "pod")
CORPORA = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), max_size=14)


@settings(max_examples=30, deadline=None)
@given(CORPORA, st.sampled_from(WORDS), st.sampled_from(get_args(Fusion)), st.integers(0, 14))
def test_any_corpus_gives_a_stable_prefix_of_what_is_there(
    texts: list[str], word: str, fusion: Fusion, embedded: int
) -> None:
    reader = reader_of(texts, embedded)
    ten, again, five = (ask(reader, word, fusion=fusion, top_k=k) for k in (10, 10, 5))
    assert ten.chunks == again.chunks
    assert ids_of(five) == ids_of(ten)[:5]
    assert len(ten.chunks) == min(10, dict(ten.query_metadata.counts).get("union", 0))
    for each in ten.chunks:
        assert 0 <= each.final_score <= 1
        assert not any(math.isnan(score.value) for score in each.scores)


@settings(max_examples=20, deadline=None)
@given(CORPORA, st.sampled_from(WORDS), st.sampled_from(get_args(Fusion)), st.sampled_from(LEGS))
def test_a_leg_of_weight_zero_is_the_same_as_no_leg(texts: list[str], word: str, fusion: Fusion, dropped: Leg) -> None:
    reader = reader_of(texts)
    weights = tuple((leg, 0.0 if leg == dropped else 2.0) for leg in LEGS)
    others = tuple(leg for leg in LEGS if leg != dropped)
    without = ask(reader, word, fusion=fusion, weights=weights, legs=others)
    with_zero = ask(reader, word, fusion=fusion, weights=weights)
    assert ids_of(with_zero) == ids_of(without)
    assert [each.final_score for each in with_zero.chunks] == [each.final_score for each in without.chunks]


# What is said about it.


def why(chunk: ScoredChunk) -> dict[str, str]:
    return {score.stage: score.why for score in chunk.scores}


def test_each_stage_says_why() -> None:
    reader = reader_of(["alpha beta", "beta", "gamma"])
    first, second, third = ask(reader, "alpha beta").chunks
    assert [score.stage for score in first.scores] == ["dense", "bm25_code", "bm25_nlp", "fuse"]
    assert why(first)["dense"] == "cosine 1.00, rank 1 of 3"
    assert why(second)["bm25_nlp"] == f"BM25 {second.bm25_nlp_score:.2f}, rank 2 of 2"
    assert why(third)["bm25_code"] == "no query term occurs"
    assert third.scores[1].rank == 0
    assert [each.scores[-1].rank for each in (first, second, third)] == [1, 2, 3]


def test_the_sentence_of_a_z_fusion_adds_up_to_its_score(reader: StoreReader) -> None:
    for each in ask(reader).chunks:
        formula, _, terms = why(each)["fuse"].partition(": ")
        assert formula == "z^2"
        *legs, neighbours = terms.split(" + ")
        pairs = [term.split()[0].split("·") for term in legs]
        assert [weight for weight, _ in pairs] == ["0.7", "0.15", "0.15"]
        assert neighbours.endswith(" neighbours")
        total = sum(float(weight) * float(inner) for weight, inner in pairs) + float(neighbours.split()[0])
        assert 1 / (1 + math.exp(-total)) == pytest.approx(each.final_score, abs=0.005)


def test_the_sentence_of_rrf_is_its_formula() -> None:
    result = ask(reader_of(["alpha beta", "beta", "gamma"]), "alpha beta", fusion="rrf", alpha=0.5)
    assert why(result.chunks[0])["fuse"] == "rrf: 0.5/(60+1) dense + 0.25/(60+1) code + 0.25/(60+1) prose"
    assert why(result.chunks[2])["fuse"].endswith("+ 0 code + 0 prose")


def test_explain_names_the_terms_that_matched() -> None:
    reader = reader_of(["retries of parseBody", "other"])
    first = ask(reader, "parseBody retry now", explain=True).chunks[0]
    assert why(first)["bm25_code"].startswith(f"BM25 {first.bm25_code_score:.2f} for parse, body, parsebody, ")
    assert why(first)["bm25_nlp"].startswith(f"BM25 {first.bm25_nlp_score:.2f} for parsebodi, retri, ")


def test_metadata_counts_and_times_every_stage(reader: StoreReader) -> None:
    metadata = ask(reader, top_k=3).query_metadata
    counts = dict(metadata.counts)
    assert list(counts) == ["dense", "bm25_code", "bm25_nlp", "union", "hydrated", "returned", "dropped"]
    assert (counts["dense"], counts["union"], counts["returned"], counts["dropped"]) == (12, 12, 3, 0)
    later = ["signals", "freshness", "boost", "exact", "parents", "confidence"]
    assert [name for name, _ in metadata.stages] == ["plan", "prepare", *LEGS, "fuse", "smoothing", "hydrate", *later]
    assert 0 < sum(ms for _, ms in metadata.stages) <= metadata.total_ms
    assert (metadata.model, metadata.fusion, metadata.chunks) == ("trigrams", "z", len(TEXTS))


# Vectors that are not there yet.


def test_missing_vectors_are_neutral_and_noted() -> None:
    reader = reader_of(TEXTS, embedded=5)
    result = ask(reader, top_k=12)
    assert result.degraded == (
        Degradation("dense", "vectors cover 41 % of the chunks; run `dowse index` to finish them"),
    )
    assert result.query_metadata.embedding_coverage == 5 / 12
    bare = [each for each in result.chunks if each.text not in TEXTS[:5]]
    assert bare
    for each in bare:
        assert each.dense_score is None
        assert why(each)["dense"].startswith("no vector yet")
        assert "·0.00 dense" in why(each)["fuse"]


def test_a_store_without_vectors_answers_with_words_and_asks_no_embedder() -> None:
    reader = reader_of(TEXTS, embedded=0)
    down = Unreachable()
    result = answer(QueryRequest(QUESTION), reader, down, Tokenizer(), None)
    assert ids_of(result) == ids_of(ask(reader, legs=WORD_LEGS))
    assert [each.stage for each in result.degraded] == ["dense"]
    assert "cover 0 %" in result.degraded[0].reason


@pytest.mark.parametrize("note", ["", "the model granite is not on this machine; run `dowse models pull`"])
def test_without_an_embedder_the_dense_leg_is_listed_with_the_reason(reader: StoreReader, note: str) -> None:
    result = answer(QueryRequest(QUESTION), reader, None, Tokenizer(), None, dense_note=note)
    assert ids_of(result) == ids_of(ask(reader, legs=WORD_LEGS))
    default = "no embedding model is in use; run `dowse models pull`, then `dowse index`"
    assert result.degraded == (Degradation("dense", note or default),)


def test_a_leg_that_was_not_asked_for_is_not_missed(reader: StoreReader) -> None:
    assert answer(QueryRequest(QUESTION, legs=WORD_LEGS), reader, None, Tokenizer(), None).degraded == ()


@dataclass(frozen=True)
class Forgetful:
    """A reader that no longer has some of the chunks its legs find."""

    inner: StoreReader
    gone: frozenset[ChunkId]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def session(self, constants: Bm25 = STANDARD) -> Any:
        return self

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        return {each: chunk for each, chunk in self.inner.get(ids).items() if each not in self.gone}


def test_chunks_gone_from_the_store_are_counted_and_the_next_move_up(reader: StoreReader) -> None:
    full = ids_of(ask(reader, top_k=12))
    result = ask(Forgetful(reader, frozenset(full[:2])), top_k=3)
    assert ids_of(result) == full[2:5]
    assert dict(result.query_metadata.counts)["dropped"] == 2


def test_a_window_with_gaps_is_filled_from_below() -> None:
    texts = [f"retry number {n}" for n in range(60)]
    reader = reader_of(texts)
    full = ids_of(ask(reader, top_k=60))
    result = ask(Forgetful(reader, frozenset(full[:50])), top_k=10)
    assert ids_of(result) == full[50:60]


# Failures.


@dataclass(frozen=True)
class Unreachable:
    """An embedder whose endpoint does not answer."""

    model: str = "trigrams"
    dimension: int = DIMENSION

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        raise ModelUnavailableError("the endpoint does not answer")


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("fusion", get_args(Fusion))
@pytest.mark.parametrize("leg", LEGS)
def test_a_leg_that_is_down_leaves_the_answer_of_the_others(
    reader: StoreReader, pool: ThreadPoolExecutor, leg: Leg, fusion: Fusion, threads: bool
) -> None:
    broken = Broken(reader, (leg,), UnavailableError(f"{leg} is down"))
    request = QueryRequest(QUESTION, fusion=fusion)
    result = answer(request, broken, EMBEDDER, Tokenizer(), pool if threads else None)
    others = tuple(each for each in LEGS if each != leg)
    assert result.chunks == ask(reader, fusion=fusion, legs=others).chunks
    assert result.degraded == (Degradation(leg, f"{leg} is down"),)
    assert leg not in dict(result.query_metadata.counts)


def test_an_unreachable_embedder_leaves_the_words(reader: StoreReader) -> None:
    result = answer(QueryRequest(QUESTION, alpha=1.0), reader, Unreachable(), Tokenizer(), None)
    assert ids_of(result) == ids_of(ask(reader, legs=WORD_LEGS))
    assert result.degraded == (Degradation("dense", "the endpoint does not answer"),)


def test_when_every_leg_is_down_the_result_is_empty_and_says_so(reader: StoreReader) -> None:
    result = ask(Broken(reader, LEGS, DOWN))
    assert (result.chunks, result.nothing_found) == ((), True)
    assert [each.stage for each in result.degraded] == [*LEGS, "fuse"]


def test_strict_raises_when_every_leg_is_down_and_names_the_reasons(reader: StoreReader) -> None:
    with pytest.raises(NoRecallError, match="dense: the part is down; bm25_code: the part is down"):
        ask(Broken(reader, LEGS, DOWN), strict=True)


def test_strict_accepts_one_leg_and_an_honest_nothing(reader: StoreReader) -> None:
    assert ask(Broken(reader, ("dense", "bm25_code"), DOWN), strict=True).chunks
    assert ask(reader, "xyzzy", legs=WORD_LEGS, strict=True).nothing_found


@pytest.mark.parametrize("threads", [False, True])
def test_asking_only_the_leg_that_is_not_there_is_no_recall(
    reader: StoreReader, pool: ThreadPoolExecutor, threads: bool
) -> None:
    request = QueryRequest(QUESTION, legs=("dense",))
    executor = pool if threads else None
    result = answer(request, reader, None, Tokenizer(), executor, dense_note="switched off")
    assert result.nothing_found
    assert result.degraded[0] == Degradation("dense", "switched off")
    with pytest.raises(NoRecallError, match="dense: switched off"):
        answer(replace(request, strict=True), reader, None, Tokenizer(), executor, dense_note="switched off")


@pytest.mark.parametrize("threads", [False, True])
def test_a_bug_of_our_own_in_a_leg_surfaces(
    reader: StoreReader, pool: ThreadPoolExecutor, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*given: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(type(reader), "search_words", bug)
    with pytest.raises(TypeError, match="a bug"):
        answer(QueryRequest(QUESTION), reader, EMBEDDER, Tokenizer(), pool if threads else None)


# Time.


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(frozen=True)
class Act:
    """A stage that does something and leaves the state as it is."""

    name: str
    act: Callable[[], object]

    def __call__(self, state: QueryState, /) -> QueryState:
        self.act()
        return state


def test_a_late_optional_step_is_skipped_and_a_required_or_even_late_one_is_not() -> None:
    clock = Clock()
    ran: list[str] = []

    def step(name: str, **flags: bool) -> tuple[Step]:
        return (Step(Act(name, lambda: ran.append(name)), **flags),)

    slow = (Step(Act("slow", lambda: setattr(clock, "now_s", 3.0))),)
    waves = (step("early", optional=True), slow, step("late", optional=True),
             step("fuse", optional=True, even_late=True), step("required"))  # fmt: skip
    traced = run(waves, QueryState(Query("q", 1)), None, Deadline.after(2.0, clock))
    assert ran == ["early", "fuse", "required"]
    assert traced.state.degraded == (Degradation("late", "skipped after the deadline of 2 s"),)
    assert [each.stage for each in traced.trace] == ["early", "slow", "late", "fuse", "required"]


def test_a_leg_that_overruns_the_deadline_is_left_behind(reader: StoreReader, pool: ThreadPoolExecutor) -> None:
    release = threading.Event()

    @dataclass(frozen=True)
    class Hanging(TrigramEmbedder):
        def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
            release.wait(30)
            return super().embed(texts, role=role)

    try:
        request = QueryRequest(QUESTION, deadline_s=0.5)
        result = answer(request, reader, Hanging(), Tokenizer(), pool)
    finally:
        release.set()
    assert result.chunks == ask(reader, legs=WORD_LEGS).chunks
    assert result.degraded == (Degradation("dense", "skipped after the deadline of 0.5 s"),)


# The shape of the path.


def waves_of(reader: StoreReader) -> tuple[tuple[Step, ...], ...]:
    request = QueryRequest(QUESTION)
    return build(
        Assembly(named("default").adjusted(request), reader, Tokenizer()),
        request,
        EMBEDDER,
        QueryState(Query(QUESTION, 10)),
    )


def test_walk_shows_what_is_known_after_each_wave(reader: StoreReader) -> None:
    moments = list(iter_waves(waves_of(reader), QueryState(Query(QUESTION, 10)), None, None))
    known = [(len(each.state.lists), each.state.fused is not None, len(each.state.hits)) for each in moments]
    assert known[:5] == [(0, False, 0), (3, False, 0), (3, True, 0), (3, True, 0), (3, True, 12)]
    assert set(known[5:]) == {(3, True, 12)}


def test_one_more_step_reorders_the_answer(reader: StoreReader) -> None:
    @dataclass(frozen=True)
    class Reverse:
        name: str = "reverse"

        def __call__(self, state: QueryState, /) -> QueryState:
            return replace(state, hits=state.hits[::-1])

    start = QueryState(Query(QUESTION, 10))
    plain = run(waves_of(reader), start, None, None).state.hits
    longer = run((*waves_of(reader), (Step(Reverse()),)), start, None, None)
    assert longer.state.hits == plain[::-1]
    assert longer.trace[-1].count == len(plain)


def test_steps_side_by_side_may_only_add_lists() -> None:
    @dataclass(frozen=True)
    class Meddler:
        name: str = "meddler"

        def __call__(self, state: QueryState, /) -> QueryState:
            return replace(state, query=Query("something else", 1))

    waves = ((Step(Meddler()), Step(Act("idle", lambda: None))),)
    with pytest.raises(TypeError, match="'meddler' ran in parallel and may only add lists"):
        run(waves, QueryState(Query("q", 1)), None, None)


def test_no_stage_writes_into_the_arrays_it_was_given(reader: StoreReader) -> None:
    state = QueryState(Query(QUESTION, 10))
    for wave in waves_of(reader):
        state = run((wave,), state, None, None).state
        for each in state.lists:  # numpy refuses any write from here on
            each.found.ids.setflags(write=False)
            each.found.scores.setflags(write=False)
        if state.fused:
            state.fused.ids.setflags(write=False)
            state.fused.values.setflags(write=False)
    assert len(state.hits) == len(TEXTS)


def test_repeated_ids_of_a_leg_count_once(reader: StoreReader) -> None:
    """A leg that names a chunk twice gives it one place."""

    @dataclass(frozen=True)
    class Stammering:
        inner: StoreReader

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def session(self, constants: Bm25 = STANDARD) -> Any:
            return self

        def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
            found = self.inner.search_vectors(vector, k, where)
            return Found(np.repeat(found.ids, 2), np.repeat(found.scores, 2))

    for fusion in get_args(Fusion):
        plain, doubled = ask(reader, fusion=fusion), ask(Stammering(reader), fusion=fusion)
        assert ids_of(doubled) == ids_of(plain)
        assert [each.final_score for each in doubled.chunks] == [each.final_score for each in plain.chunks]


def test_legs_are_ranked_again_by_their_exact_scores(reader: StoreReader) -> None:
    """An approximate leg's own order and scores do not reach the answer."""

    @dataclass(frozen=True)
    class Approximate:
        inner: StoreReader

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def session(self, constants: Bm25 = STANDARD) -> Any:
            return self

        def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
            found = self.inner.search_vectors(vector, k, where)
            return Found(found.ids[::-1].copy(), np.zeros(len(found.ids)))

    assert ask(Approximate(reader), fusion="rrf").chunks == ask(reader, fusion="rrf").chunks


def test_equal_chunks_are_ordered_by_id() -> None:
    reader = reader_of(["retry the call"] * 6)
    found = ids_of(ask(reader, "retry"))
    assert found == sorted(found, key=id_number)
    assert len(found) == 6


def test_hits_are_made_whole(reader: StoreReader) -> None:
    """They are built past the constructor, and must be what it would have built."""
    for each in ask(reader, explain=True).chunks:
        made = replace(each)
        assert each == made
        assert set(vars(each)) == {*vars(made), "_explain"}


def test_a_hit_tells_its_history_when_it_is_read_and_can_be_kept(reader: StoreReader) -> None:
    hit = ask(reader).chunks[0]
    assert "scores" not in vars(hit)
    kept = pickle.loads(pickle.dumps(hit))
    assert [score.stage for score in hit.scores][:4] == ["dense", "bm25_code", "bm25_nlp", "fuse"]
    assert hit.scores is hit.scores
    assert kept == hit
