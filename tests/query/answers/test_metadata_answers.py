"""Questions about documents as wholes, answered from the real stores' metadata, with the documents as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dowse.filters import Filter, by_corpus, by_document, by_path, by_source
from dowse.query.answers.metadata import MOST_NAMED, AnswerMetadata, CiteEvidence
from dowse.query.pipeline import Parts, answer
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Document, QueryRequest, QueryResult
from factories import document
from values import replace

Store = MemoryStore | EmbeddedStore

RETRY = "Adaptive Retry Budgets for Small Service Graphs"
CHANGED = datetime(2026, 5, 3, 14, 30, tzinfo=UTC)


def kept(path: str, title: str, kind: str, *texts: str, author: str | None = None, **meta: str) -> Document:
    like = Chunk("", "", "", kind, "", author=author, document_title=title)
    made = document(path, *texts, like=like)
    return replace(made, title=title, meta=tuple(meta.items()), modified_ns=int(CHANGED.timestamp() * 1e9))


DOCUMENTS = [
    kept(
        "papers/adaptive-retry-budgets.md",
        RETRY,
        "DOC_PAPER",
        "Retries hide transient faults and amplify overload.",
        "We propose a budget whose ratio follows recovery.",
        authors="Teun Marchetti, Yuki Tannahill and Odalys Brandt",
        date="2026-04-20",
        doi="10.99999/wrenfold.2026.04",
    ),
    kept("papers/hedging.md", "Hedged Requests", "DOC_PAPER", "Send twice, take the first.", authors="Teun Marchetti"),
    kept("docs/runbooks/deploy.md", "Deploying a service", "DOC_RUNBOOK", "Drain, then roll.", author="Teun Marchetti"),
    kept("docs/runbooks/rollback.md", "Rolling back", "DOC_RUNBOOK", "Keep calm.", author="Sam", updated="2026-06-01"),
    *(kept(f"docs/note-{n}.md", "Weekly note", "DOC_PAGE", f"Nothing new in week {n}.") for n in range(MOST_NAMED + 1)),
]  # fmt: skip


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, index_folder: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else EmbeddedStore(index_folder)
    writer = made.writer()
    writer.put(DOCUMENTS)
    writer.publish()
    if isinstance(made, EmbeddedStore):
        writer.close()
    yield made
    made.close()


def ask(store: Store, text: str, where: Filter = ()) -> QueryState:
    stage = AnswerMetadata(store.reader(), store.documents, Tokenizer())
    return stage(QueryState(Query(text, 10, where)))


def paths(state: QueryState) -> set[str]:
    return {made.path for made in DOCUMENTS if made.id in state.evidence}


DEPLOY = "“Deploying a service” (docs/docs/runbooks/deploy.md)"
PAPER = f"“{RETRY}” (docs/papers/adaptive-retry-budgets.md)"


@pytest.mark.parametrize(
    ("text", "expected", "evidence"),
    [
        (
            "who wrote the adaptive retry budgets paper?",
            f"{PAPER} was written by Teun Marchetti, Yuki Tannahill and Odalys Brandt (its metadata).",
            "papers/adaptive-retry-budgets.md",
        ),
        (
            "authors of the paper 10.99999/wrenfold.2026.04",
            f"{PAPER} was written by Teun Marchetti, Yuki Tannahill and Odalys Brandt (its metadata).",
            "papers/adaptive-retry-budgets.md",
        ),
        (
            "who wrote docs/runbooks/deploy.md",
            f"{DEPLOY} was written by Teun Marchetti (its chunks).",
            "docs/runbooks/deploy.md",
        ),
        (
            "when was the deploy runbook last changed?",
            f"{DEPLOY} was last changed on 2026-05-03 14:30 UTC (the file's time).",
            "docs/runbooks/deploy.md",
        ),
        (
            "when did rollback.md last change",
            "“Rolling back” (docs/docs/runbooks/rollback.md) was last changed on 2026-06-01 (its metadata).",
            "docs/runbooks/rollback.md",
        ),
        (
            "when was the retry paper published?",
            f"{PAPER} is dated 2026-04-20 (its metadata).",
            "papers/adaptive-retry-budgets.md",
        ),
        (
            "what is the title of papers/hedging.md",
            "docs/papers/hedging.md is titled “Hedged Requests” (its metadata).",
            "papers/hedging.md",
        ),
        (
            "What's the DOI of Adaptive Retry Budgets?",
            f"{PAPER} has the DOI 10.99999/wrenfold.2026.04 (its metadata).",
            "papers/adaptive-retry-budgets.md",
        ),
    ],
)  # fmt: skip
def test_a_field_of_a_document_is_answered_from_its_metadata(
    store: Store, text: str, expected: str, evidence: str
) -> None:
    found = ask(store, text)
    assert found.metadata_answer == expected
    assert paths(found) == {evidence}
    assert found.degraded == ()


@pytest.mark.parametrize("name", ["Marchetti", "Teun Marchetti", "marchetti"])
def test_works_of_a_person_are_those_of_the_kind_asked_for(store: Store, name: str) -> None:
    found = ask(store, f"which papers by {name}")
    assert paths(found) == {"papers/adaptive-retry-budgets.md", "papers/hedging.md"}
    assert found.metadata_answer is not None
    assert found.metadata_answer.startswith(f"By {name}: “")
    assert "“Hedged Requests” (docs/papers/hedging.md)" in found.metadata_answer


@pytest.mark.parametrize("name", ["March", "Yuki Marchetti"])
def test_half_a_name_or_the_halves_of_two_are_no_name(store: Store, name: str) -> None:
    assert ask(store, f"papers by {name}").metadata_answer is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("who wrote the manual of the espresso machine", "no document called"),
        ("papers by Nobody Known", "no document by"),
        ("what is the doi of papers/hedging.md", "has no DOI"),
        ("when was the weekly note last changed", f"any of {MOST_NAMED + 1} documents"),
        ("when was the paper published", "no document called"),
        ("how does auth work", "names no known field or document"),
    ],
)
def test_what_cannot_be_answered_says_so_and_leaves_the_search_alone(store: Store, text: str, reason: str) -> None:
    found = ask(store, text)
    assert found.metadata_answer is None
    assert found.evidence == ()
    (note,) = found.degraded
    assert note.stage == "metadata"
    assert reason in note.reason


@pytest.mark.parametrize(
    "where", [(by_path("docs/**"),), (by_corpus("CODE"),), (by_source("elsewhere"),), (by_document("x"),)], ids=repr
)
def test_a_filter_hides_documents_from_answers_and_evidence(store: Store, where: Filter) -> None:
    found = ask(store, "who wrote the adaptive retry budgets paper?", where)
    assert found.metadata_answer is None
    assert found.evidence == ()


def test_a_filter_on_one_document_makes_the_paper_clear(store: Store) -> None:
    found = ask(store, "when was the paper published?", (by_document(DOCUMENTS[0].id),))
    assert found.metadata_answer == f"{PAPER} is dated 2026-04-20 (its metadata)."


def test_evidence_comes_first_once_and_keeps_the_others_in_order(store: Store) -> None:
    reader = store.reader()
    first, second = DOCUMENTS[0].chunks[1], DOCUMENTS[2].chunks[0]
    state = QueryState(
        Query("q", 10),
        hits=(Hit(second, 0.9), Hit(first, 0.4)),
        evidence=(DOCUMENTS[0].id, DOCUMENTS[1].id),
    )
    after = CiteEvidence(reader)(state)
    assert [hit.chunk.id for hit in after.hits] == [first.id, DOCUMENTS[1].chunks[0].id, second.id]
    assert [hit.value for hit in after.hits] == [1.0, 1.0, 0.9]
    assert after.hits[0].scores[-1].why == "its metadata answers the question"
    assert state.hits[0].scores == ()


def test_evidence_that_is_gone_or_filtered_is_left_out(store: Store) -> None:
    state = QueryState(Query("q", 10, (by_path("docs/**"),)), evidence=(DOCUMENTS[0].id, "gone"))
    assert CiteEvidence(store.reader())(state).hits == ()


def whole(store: Store, text: str, **fields: Any) -> QueryResult:
    parts = Parts(documents=store.documents)
    return answer(QueryRequest(text, **fields), store.reader(), None, Tokenizer(), parts=parts)


def test_a_metadata_question_is_answered_with_the_document_as_first_hit(store: Store) -> None:
    found = whole(store, "who wrote the adaptive retry budgets paper?")
    assert found.metadata_answer is not None
    assert "Yuki Tannahill" in found.metadata_answer
    assert found.query_type == "metadata"
    assert found.chunks[0].document_id == DOCUMENTS[0].id


def test_a_question_that_is_none_finds_as_ever_and_has_no_answer(store: Store) -> None:
    found = whole(store, "how do retries amplify overload")
    assert found.metadata_answer is None
    assert found.chunks[0].document_id == DOCUMENTS[0].id
    assert not [each for each in found.degraded if each.stage == "metadata"]


def test_a_metadata_question_without_an_answer_still_searches(store: Store) -> None:
    found = whole(store, "who wrote about transient faults that amplify overload?")
    assert found.metadata_answer is None
    assert [each.stage for each in found.degraded if each.stage == "metadata"] == ["metadata"]
    assert found.chunks[0].document_id == DOCUMENTS[0].id
