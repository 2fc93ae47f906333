"""A long document ranks by its whole and its best piece together, in every leg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from beir_folders import GARDEN, GRADES, write_collection
from dowse.evaluate.collection import as_document, opened
from dowse.evaluate.datasets import CorpusDocument, load
from dowse.evaluate.long_documents import PIECE, ChunkGroups, FuseDocuments, by_document, pooled
from dowse.evaluate.pools import Knobs, figures, pools_of
from dowse.evaluate.run import DEFAULT, QueryRunner
from dowse.identity import id_number
from dowse.models.embed_hash import HashEmbedder
from dowse.query.assemble import Parts
from dowse.query.pipeline import prepared, run
from dowse.query.plan.profiles import named
from dowse.query.stages.legs import Dense
from dowse.types import Document, QueryRequest

FILLER = "Plain talk of this and that goes on for a while here. "
LONG = {
    "tale": ("", FILLER * 60 + "Wireworms bore into potatoes. " + FILLER * 30),
    "spread": ("", (FILLER * 20 + "Wireworms. ") + (FILLER * 20 + "Potatoes. ") + FILLER * 20),
}


def documents() -> list[Document]:
    texts = {**GARDEN, **LONG}
    return [as_document("garden", CorpusDocument(name, *each), chunked=True) for name, each in texts.items()]


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[QueryRunner]:
    dataset = load(write_collection(tmp_path / "garden", documents={**GARDEN, **LONG}))
    with opened(dataset, tmp_path / "cache", HashEmbedder(), chunked=True) as found:
        yield QueryRunner(found)


def numbers(document: Document) -> list[int]:
    return [id_number(chunk.id) for chunk in document.chunks]


def test_members_of_a_document_stand_together_the_whole_first() -> None:
    groups = ChunkGroups.of(documents())
    for number, document in enumerate(documents()):
        start, count = groups.starts[number], groups.counts[number]
        assert groups.members[start : start + count].tolist() == numbers(document)
        assert set(groups.documents_of(np.array(numbers(document), np.uint64)).tolist()) == {number}


def test_a_choice_of_documents_keeps_their_members() -> None:
    last, first = documents()[-1], documents()[0]
    few = ChunkGroups.of(documents()).chosen(np.array([0, len(documents()) - 1]))
    assert few.members.tolist() == numbers(first) + numbers(last)
    assert few.counts.tolist() == [1, len(last.chunks)]
    assert few.documents_of(np.array(numbers(last), np.uint64)).tolist() == [1] * len(last.chunks)


def test_a_score_moves_from_the_whole_towards_the_best_piece() -> None:
    one = np.array([0, 1, 4]), np.array([1, 3, 1])  # documents of one, three and one members
    group = ChunkGroups(np.arange(5, dtype=np.uint64), *one, np.arange(5, dtype=np.uint64), np.array([0, 1, 1, 1, 2]))
    scores = np.array([[0.5, 0.2, 0.6, 0.1, 0.3], [1.0, 4.0, 2.0, 3.0, 0.0]])
    expected = [[0.5, 0.2 + 0.25 * (0.6 - 0.2), 0.3], [1.0, 4.0 + 0.25 * (3.0 - 4.0), 0.0]]
    np.testing.assert_allclose(pooled(scores, group, 0.25), expected)


def test_each_document_is_one_hit_told_by_the_piece_that_answers(cut: QueryRunner) -> None:
    request = QueryRequest("wireworms bore into potatoes", legs=("bm25_nlp",), top_k=10)
    ready = cut.prepared(request, Parts(), 100)
    chunks = [hit.chunk for hit in run(ready.waves, ready.state, None, None).state.hits]
    assert len({chunk.document_id for chunk in chunks}) == len(chunks)
    assert "Wireworms bore into potatoes" in chunks[0].text
    assert len(chunks[0].text) < len(LONG["tale"][1])


def test_a_leg_scores_a_document_as_the_store_scores_its_whole_and_its_best_piece(cut: QueryRunner) -> None:
    ready = cut.prepared(QueryRequest("wireworms in potatoes", legs=("bm25_nlp",)), Parts(), 100)
    names = [[step.stage.name for step in wave] for wave in ready.waves]
    state = run(ready.waves[: names.index(["fuse"]) + 1], ready.state, None, None).state
    assert state.fused is not None
    (column,) = state.fused.columns
    terms = {"bm25_nlp": cut.tokenizer.query("wireworms in potatoes")["bm25_nlp"]}
    expected = []
    for document in (each for each in documents() if each.path in LONG):
        whole, *pieces = cut.reader.score_words(terms, np.array(numbers(document), np.uint64))["bm25_nlp"]  # type: ignore[arg-type]
        expected.append(whole + PIECE * (max(pieces) - whole))
    assert sorted(column.scores.tolist()) == pytest.approx(sorted(expected))
    assert column.ranks.tolist() == [1, 2]


def test_a_document_has_no_rank_in_a_leg_that_did_not_bring_it(cut: QueryRunner) -> None:
    ready = cut.prepared(QueryRequest("wireworms", legs=("dense", "bm25_nlp")), Parts(), 100)
    names = [[step.stage.name for step in wave] for wave in ready.waves]
    fused = run(ready.waves[: names.index(["fuse"]) + 1], ready.state, None, None).state.fused
    assert fused is not None
    dense, words = fused.columns
    assert sorted(dense.ranks.tolist()) == list(range(1, len(documents()) + 1))  # every document has a vector
    assert sorted(words.ranks.tolist()) == [0] * (len(documents()) - len(LONG)) + [1, 2]


def test_documents_that_are_not_cut_are_ranked_as_without_cutting(tmp_path: Path) -> None:
    dataset = load(write_collection(tmp_path / "garden"))
    rankings = []
    for chunked in (False, True):
        with opened(dataset, tmp_path / "cache", HashEmbedder(), chunked=chunked) as found:
            rankings.append([each.ranking for each in QueryRunner(found).run(DEFAULT).answered])
    assert rankings[0] == rankings[1]


def test_only_fusion_by_score_or_vote_is_told_of_documents(cut: QueryRunner) -> None:
    groups = cut.collection.groups
    assert groups is not None
    plain = prepared(QueryRequest("wireworms"), cut.reader, cut.embedder, cut.tokenizer)
    before = [step.stage for wave in plain.waves for step in wave]
    after = [step.stage for wave in by_document(plain.waves, groups) for step in wave]
    changed = [new for old, new in zip(before, after, strict=True) if new is not old]
    assert [type(stage) for stage in changed] == [FuseDocuments]
    assert [stage.name for stage in before] == [stage.name for stage in after]


def test_a_leg_brings_the_chunks_of_as_many_documents(cut: QueryRunner) -> None:
    chunks = sum(len(each.chunks) for each in documents())
    assert chunks > len(documents())
    ready = cut.prepared(QueryRequest("plants", legs=("dense",)), Parts(), 4)
    (leg,) = (step.stage for wave in ready.waves for step in wave if isinstance(step.stage, Dense))
    assert leg.depth == round(4 * chunks / len(documents()))


def test_nothing_found_is_an_empty_answer(cut: QueryRunner) -> None:
    request = QueryRequest("zzzz", legs=("bm25_nlp",))
    ready = cut.prepared(request, Parts(), 100)
    assert run(ready.waves, ready.state, None, None).state.hits == ()


def test_knobs_are_tuned_on_the_documents_that_are_ranked(cut: QueryRunner) -> None:
    asked = cut.run(DEFAULT).figures()
    assert len(asked) == len(GRADES)
    assert figures(pools_of(cut, "default"), Knobs.of(named("default"))) == pytest.approx(asked)
