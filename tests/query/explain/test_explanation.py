"""Why not: chunks are lost at every stage on purpose, and the stage and a change that works must be named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import NotFoundError
from dowse.filters import Ne, Not, Or, Prefix
from dowse.ports import Candidate
from dowse.query.assemble import Parts
from dowse.query.explain.explanation import Explanation
from dowse.query.explain.explanation import explained as explain
from dowse.query.explain.remedies import FILTERS
from dowse.query.explain.trace import clause_text
from dowse.query.pipeline import PreparedQuery, finished, prepared
from dowse.query.plan.profiles import PROFILES
from dowse.types import Chunk, Document, QueryRequest
from factories import PLAIN, document, of_chunks
from small_store import TEXTS, SmallStore, small_store, texts
from values import replace

QUESTION = "failed calls retry with backoff"
NAMES = [profile.name for profile in PROFILES]


def explained(at: SmallStore, request: QueryRequest, *chunks: Chunk, parts: Parts | None = None) -> Explanation:
    def ask(changed: QueryRequest) -> PreparedQuery:
        return prepared(changed, at.reader, at.embedder, at.tokenizer, parts=parts)

    answer = explain(request, "target", chunks, ask, NAMES)
    if answer.verified is not None:
        confirm(answer, request, ask(replace(request, **dict(answer.verified.remedy.fields))), chunks)
    return answer


def confirm(answer: Explanation, request: QueryRequest, changed: PreparedQuery, chunks: Sequence[Chunk]) -> None:
    """The change was promised to work: ask it."""
    assert answer.verified is not None
    result = finished(changed, None)
    shown = [{each.id, each.child_id} for each in result.chunks]
    ranks = [rank for rank, own in enumerate(shown, start=1) if own & {chunk.id for chunk in chunks}]
    assert ranks[0] == answer.verified.rank


def of(documents: Sequence[Document], text: str) -> Chunk:
    return next(chunk for each in documents for chunk in each.chunks if text in chunk.text)


def many(count: int = 40) -> list[Document]:
    """Documents that answer less and less well."""
    return texts(
        *(f"retry failed calls {'with backoff' if at < 5 else ''} note {'x ' * at}{at}" for at in range(count))
    )


def test_what_is_among_the_hits_is_said_to_be_there() -> None:
    documents = texts()
    answer = explained(small_store(documents), QueryRequest(QUESTION), of(documents, TEXTS[0]))
    assert (answer.rank, answer.dropped_at, answer.verified) == (1, None, None)
    assert [place.stage for place in answer.trace][:4] == ["dense", "bm25_code", "bm25_nlp", "fuse"]


def test_filter_that_keeps_it_out_is_named_and_only_that_is_dropped() -> None:
    documents = [
        document("a.go", "retry failed calls", like=replace(PLAIN, language="go", repo_name="pay")),
        document("b.py", "retry failed calls in python", like=replace(PLAIN, language="python", repo_name="pay")),
    ]
    request = QueryRequest(QUESTION, language_filter=("go",), repo_filter=("pay",))
    answer = explained(small_store(documents), request, documents[1].chunks[0])
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "filter"
    assert "language is one of go" in answer.dropped_at.reason
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields) == {"language_filter": ()}


FILTERED: dict[str, object] = {
    "corpus_filter": ("DOC",), "service_filter": ("other",), "repo_filter": ("other",), "document_filter": ("other",),
    "source_filter": ("other",), "language_filter": ("go",), "path_filter": ("*.go",), "section_filter": ("other",),
    "channel_filter": ("other",), "author_filter": ("other",), "meta_filter": (("team", "other"),),
    "created_after": datetime(2030, 1, 1, tzinfo=UTC), "created_before": datetime(2000, 1, 1, tzinfo=UTC),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_of_a_request_can_be_the_one_to_drop(name: str) -> None:
    documents = texts()
    request = replace(QueryRequest(QUESTION), **{name: FILTERED[name]})  # type: ignore[arg-type]
    answer = explained(small_store(documents), request, of(documents, TEXTS[0]))
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "filter"
    assert answer.verified is not None
    assert list(dict(answer.verified.remedy.fields)) == [name]


def test_clauses_of_where_are_dropped_one_by_one() -> None:
    documents = texts()
    keep, drop = Ne("language", "go"), Prefix("document_source", "nowhere")
    answer = explained(small_store(documents), QueryRequest(QUESTION, where=(keep, drop)), of(documents, TEXTS[0]))
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields) == {"where": (keep,)}


def test_a_few_more_hits_are_proposed_when_it_stands_just_below() -> None:
    documents = many()
    at = small_store(documents)
    twelfth = finished(at.prepare(QueryRequest(QUESTION, top_k=12)), None).chunks[11].id
    answer = explained(
        at, QueryRequest(QUESTION), *(each.chunks[0] for each in documents if each.chunks[0].id == twelfth)
    )
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "limit"
    assert "the limit is 10" in answer.dropped_at.reason
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields) == {"top_k": 12}


def test_weights_are_proposed_when_the_other_kind_of_leg_has_it() -> None:
    """Many words like the question's drown the one that is rare; words alone know how rare it is."""
    target = document("z.md", "zebra quagga " + " ".join(f"other{at}" for at in range(40)))
    at = small_store([*many(60), target])
    answer = explained(at, QueryRequest("retry calls zebra quagga", alpha=1.0, top_k=1), target.chunks[0])
    assert answer.rank is None
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields)["alpha"] < 1.0


def test_leg_that_looks_too_shallow_is_told_with_the_rank_it_has_there() -> None:
    documents = many()
    at = small_store(documents)
    last = finished(at.prepare(QueryRequest(QUESTION, top_k=40)), None).chunks[-1]
    chunk = next(each.chunks[0] for each in documents if each.chunks[0].id == last.id)
    answer = explained(at, QueryRequest(QUESTION, top_k=2, depth=3), chunk)
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "legs"
    dense = next(place for place in answer.trace if place.stage == "dense")
    assert dense.rank is not None
    assert dense.rank > 3 == dense.of
    assert answer.verified is not None


def test_window_of_the_later_stages_is_told() -> None:
    documents = many(80)
    at = small_store(documents)
    ranked = finished(at.prepare(QueryRequest(QUESTION, top_k=80)), None).chunks
    chunk = next(each.chunks[0] for each in documents if each.chunks[0].id == ranked[70].id)
    answer = explained(at, QueryRequest(QUESTION, depth=100), chunk)
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "fuse"
    assert "later stages process the first 50" in answer.dropped_at.reason


def test_threshold_that_took_it_out_is_turned_off() -> None:
    documents = texts()
    at = small_store(documents)
    ranked = finished(at.prepare(QueryRequest(QUESTION)), None).chunks
    chunk = next(each.chunks[0] for each in documents if each.chunks[0].id == ranked[-1].id)
    answer = explained(at, QueryRequest(QUESTION, min_score=0.99), chunk)
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "min_score"
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields)["min_score"] == 0.0


@dataclass(frozen=True)
class Backwards:
    """Likes best what came last."""

    model: str = "backwards"

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        return [at / len(candidates) for at in range(len(candidates))]


def test_reranker_that_moved_it_down_is_named_and_turned_off() -> None:
    documents = many()
    at = small_store(documents)
    best = finished(at.prepare(QueryRequest(QUESTION)), None).chunks[0].id
    chunk = next(each.chunks[0] for each in documents if each.chunks[0].id == best)
    request = QueryRequest(QUESTION, rerank="cross-encoder", rerank_weight=1.0)
    answer = explained(at, request, chunk, parts=Parts(cross_encoder=Backwards()))
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "cross-encoder"
    assert "from rank 1 to" in answer.dropped_at.reason
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields) == {"rerank": False}


def test_chunk_without_a_word_or_vector_in_common_is_told_so_and_nothing_is_invented() -> None:
    documents = texts()
    answer = explained(small_store(documents, vectors=False), QueryRequest("zebra"), of(documents, TEXTS[0]))
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "legs"
    assert answer.dropped_at.reason.count("it contains no word of the query") == 2
    assert answer.verified is None
    assert answer.tried > 0


def test_of_a_document_the_chunk_that_came_furthest_is_followed() -> None:
    filler = many()
    target = of_chunks("t.md", [replace(PLAIN, text="zebra"), replace(PLAIN, text="retry calls " + "y " * 30)])
    answer = explained(small_store([*filler, target]), QueryRequest(QUESTION, top_k=1), *target.chunks)
    assert answer.chunk.id == target.chunks[1].id


def test_chunk_that_was_replaced_is_told_to_be_gone() -> None:
    documents = texts()
    at = small_store(documents)
    at.store.remove([documents[0].id])
    at.store.publish()
    answer = explained(at, QueryRequest(QUESTION), documents[0].chunks[0])
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "store"
    assert (answer.verified, answer.tried) == (None, 0)


def test_target_without_a_searched_chunk_is_refused() -> None:
    section = of_chunks("s.md", [replace(PLAIN, level="section", text="retry")])
    with pytest.raises(NotFoundError, match="dowse show target"):
        explained(small_store(), QueryRequest(QUESTION), *section.chunks)


def test_clauses_are_told_in_words() -> None:
    assert clause_text(Ne("language", "go")) == "language is not go"
    assert clause_text(Prefix("file_path", "src/")) == "file_path starts with src/"
    both = (Ne("language", "go"), Prefix("file_path", "src/"))
    assert clause_text(Not(both)) == "not (language is not go and file_path starts with src/)"
    assert clause_text(Or(both)) == "(language is not go) or (file_path starts with src/)"


@given(st.integers(0, len(TEXTS) - 1), st.integers(1, 3), st.sampled_from([QUESTION, "queue locks", "heartbeat"]))
def test_what_is_shown_has_a_rank_and_what_is_not_has_a_loss(number: int, top_k: int, question: str) -> None:
    """And a change that is proposed does what it says: `explained` asks it."""
    documents = texts()
    at, chunk = small_store(documents), documents[number].chunks[0]
    answer = explained(at, QueryRequest(question, top_k=top_k), chunk)
    shown = [each.id for each in finished(at.prepare(QueryRequest(question, top_k=top_k)), None).chunks]
    assert answer.rank == (shown.index(chunk.id) + 1 if chunk.id in shown else None)
    assert (answer.dropped_at is None) == (chunk.id in shown)
