"""A collection is indexed once, asked as a user would ask it, and compared part by part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dowse
from beir_folders import GARDEN, GRADES, write_collection
from dowse.errors import UnavailableError
from dowse.evaluate import collection
from dowse.evaluate.ablate import ablate, settings
from dowse.evaluate.collection import as_document, opened
from dowse.evaluate.datasets import CorpusDocument, load
from dowse.evaluate.failures import worst
from dowse.evaluate.metrics import METRICS, scored
from dowse.evaluate.report import page
from dowse.evaluate.report_tables import ablation_cells, failure_lines, failure_object, runs_csv, runs_object
from dowse.evaluate.run import DEFAULT, QueryRunner, SearchSetting, graded_run, mean_metrics
from dowse.identity import document_id, embedded_text, searchable_text, text_hash
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Progress
from dowse.query.pipeline import finished
from dowse.query.plan.profiles import named
from dowse.types import QueryRequest
from values import replace


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[QueryRunner]:
    dataset = load(write_collection(tmp_path / "garden"))
    with opened(dataset, tmp_path / "cache", HashEmbedder()) as found:
        yield QueryRunner(found)


def test_a_document_is_one_chunk_whose_id_is_no_word() -> None:
    found = as_document("garden", CorpusDocument("slug-7", "Slugs", "They eat at night."))
    (chunk,) = found.chunks
    assert embedded_text(chunk) == searchable_text(chunk) == "Slugs\nThey eat at night."
    assert chunk.content_hash == text_hash(embedded_text(chunk))


def test_a_document_without_title_or_text_is_a_chunk_too() -> None:
    (chunk,) = as_document("garden", CorpusDocument("x", "", "")).chunks
    assert chunk.content_hash == text_hash(embedded_text(chunk)) == text_hash("")


def test_cut_documents_have_the_chunks_that_the_product_makes(tmp_path: Path) -> None:
    text = " ".join(f"Sentence number {number} is about soil." for number in range(200))
    dataset = load(write_collection(tmp_path / "garden", documents={**GARDEN, "long.py": ("Soil", text)}))
    with dowse.open(tmp_path / "index", embedder=None) as engine:
        engine.add([{"id": "long.py", "text": text, "title": "Soil", "media_type": "text/plain", "source": "garden"}])
        expected = [chunk.text for chunk in engine.show("long.py")]
    with opened(dataset, tmp_path / "cache", None, cut=True) as found:
        chunks = found.store.reader().document_chunks(document_id("garden", "long.py"))
    assert [chunk.text for chunk in chunks if chunk.level == "chunk"] == expected
    assert len(expected) > 3


def test_cut_collections_score_documents_in_the_order_of_grouped_results(tmp_path: Path) -> None:
    dataset = load(
        write_collection(tmp_path / "garden", documents={**GARDEN, "long": ("Soil", "Soil is deep. " * 900)})
    )
    with opened(dataset, tmp_path / "cache", HashEmbedder(), cut=True) as found:
        runner = QueryRunner(found)
        depth = named("default").depth
        for each in runner.run(DEFAULT).answered:
            request = QueryRequest(each.question.text, group="document", top_k=100)
            grouped = finished(runner.prepared(request, runner.parts, depth)).groups
            names = {document_id("garden", name): name for name in (*GARDEN, "long")}
            assert each.ranking == tuple(names[group.chunks[0].document_id] for group in grouped)


def test_documents_that_cannot_be_added_are_noted_and_count_as_not_found(tmp_path: Path) -> None:
    dataset = load(
        write_collection(tmp_path / "garden", documents={**GARDEN, "none": ("", " "), "titled": ("Ants", "")})
    )
    for _ in range(2):
        with opened(dataset, tmp_path / "cache", None, cut=True) as found:
            assert {each.path for each in found.store.documents()} == {*GARDEN, "titled"}
            (note,) = found.dataset.notes
            assert note.startswith("1 documents that Dowse cannot add, counted as not found (none: ")


def test_figures_are_those_of_the_rankings(runner: QueryRunner) -> None:
    run = runner.run(DEFAULT)
    assert len(run.answered) == len(GRADES)
    for each in run.answered:
        assert each.metrics == scored(each.ranking, GRADES[each.question.id])
        assert set(each.ranking) <= set(GARDEN)
        assert len(set(each.ranking)) == len(each.ranking)
    assert run.metrics["ndcg@10"] == pytest.approx(np.mean([each.metrics["ndcg@10"] for each in run.answered]))
    assert run.metrics["recall@100"] == 1
    assert run.degraded == ()


def test_asking_twice_gives_the_same_and_embeds_once(runner: QueryRunner) -> None:
    assert runner.embedder is not None
    first = runner.run(DEFAULT)
    known = dict(runner.embedder._known)
    second = runner.run(DEFAULT)
    assert [each.ranking for each in first.answered] == [each.ranking for each in second.answered]
    assert runner.embedder._known == known
    assert all(each.cpu_ms >= runner.embedder.saved_ms(each.question.text) for each in second.answered)


def test_the_candidates_are_those_of_a_users_question(tmp_path: Path) -> None:
    """Looking 100 deep must not widen the legs to 300: the ranking would be another."""
    documents = {f"d{number}": ("Soil", f"Bed {number} has soil of kind {number}.") for number in range(150)}
    dataset = load(write_collection(tmp_path / "beds", documents, {"q": "soil of the bed"}, {"q": {"d7": 1.0}}))
    with opened(dataset, tmp_path / "cache", HashEmbedder(16)) as found:
        runner = QueryRunner(found)
        default = runner.result(DEFAULT, dataset.questions[0])
        narrow = runner.result(SearchSetting("narrow", QueryRequest("", depth=2)), dataset.questions[0])
    assert dict(default.query_metadata.counts)["dense"] == named("default").depth
    assert dict(narrow.query_metadata.counts)["dense"] == 2


def test_a_leg_alone_is_that_leg(runner: QueryRunner) -> None:
    question = runner.collection.dataset.questions[0]
    result = runner.result(SearchSetting("words", QueryRequest("", legs=("bm25_nlp",))), question)
    values = [chunk.bm25_nlp_score for chunk in result.chunks]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert all(chunk.dense_score is None for chunk in result.chunks)


def test_the_index_is_made_once_per_collection_and_model(tmp_path: Path) -> None:
    dataset = load(write_collection(tmp_path / "garden"))
    steps: list[Progress] = []
    for embedder, cut in ((HashEmbedder(), False), (HashEmbedder(), False), (None, False), (HashEmbedder(8), True)):
        with opened(dataset, tmp_path / "cache", embedder, cut=cut, report=steps.append) as found:
            assert found.store.reader().stats.documents == len(GARDEN)
    assert [step.done for step in steps if step.phase == "read"] == [len(GARDEN)] * 3
    assert len(list((tmp_path / "cache").iterdir())) == 3


def test_an_interrupted_index_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load(write_collection(tmp_path / "garden"))
    embedded: list[str] = []

    class Counting(HashEmbedder):
        def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
            if len(embedded) >= 3:
                raise UnavailableError("the model went away")
            embedded.extend(texts)
            return super().embed(texts, role=role)

    monkeypatch.setattr(collection, "embed_backlog", _one_by_one)
    with pytest.raises(UnavailableError), opened(dataset, tmp_path / "cache", Counting()):
        pass
    with opened(dataset, tmp_path / "cache", HashEmbedder()) as found:
        stats = found.store.reader().stats
        assert (stats.vectors, stats.chunks) == (len(GARDEN), len(GARDEN))
    assert len(embedded) == 3


def _one_by_one(writer, embedder, report=None):  # type: ignore[no-untyped-def]
    while todo := writer.pending(1):
        writer.put_vectors([todo[0].content_hash], embedder.embed([todo[0].text], role="chunk"))


def test_without_an_embedder_the_run_says_so(tmp_path: Path) -> None:
    dataset = load(write_collection(tmp_path / "garden"))
    with opened(dataset, tmp_path / "cache", None) as found:
        run = QueryRunner(found).run(DEFAULT)
    assert [each.stage for each in run.degraded] == ["dense"]


def test_chunks_of_one_document_are_one_hit(tmp_path: Path) -> None:
    long = " ".join(["Slugs eat lettuce at night."] * 400)
    documents = {**GARDEN, "slug": ("Slugs", long)}
    dataset = load(write_collection(tmp_path / "garden", documents=documents))
    with opened(dataset, tmp_path / "cache", HashEmbedder(), cut=True) as found:
        run = QueryRunner(found).run(DEFAULT)
    (answered,) = [each for each in run.answered if each.question.id == "q2"]
    assert answered.ranking[0] == "slug"
    assert len(set(answered.ranking)) == len(answered.ranking)


def test_ablation_compares_everything_with_the_first(runner: QueryRunner) -> None:
    rows = ablate([runner], settings(DEFAULT))
    names = [row.setting.name for row in rows]
    assert names[:7] == ["default", "dense", "code", "prose", "dense + code", "dense + prose", "code + prose"]
    assert len(set(names)) == len(names)
    assert rows[0].against is None
    for row in rows[1:]:
        assert row.against is not None
        assert row.against.mean == pytest.approx(row.mean - rows[0].mean)
    assert len(ablation_cells(rows)) == len(rows) + 1


def test_the_worst_questions_lose_most_and_say_why(runner: QueryRunner) -> None:
    ours = runner.run(SearchSetting("dense", QueryRequest("", legs=("dense",))))
    ideal = {q: sorted(own, key=lambda each: -own[each]) for q, own in GRADES.items()}
    perfect = graded_run(runner.collection.dataset, "perfect", ideal)
    broken = replace(ours, answered=tuple(replace(each, ranking=(), metrics=scored((), {})) for each in ours.answered))
    assert worst(runner, DEFAULT, [perfect, ours], 9) == []
    found = worst(runner, DEFAULT, [broken, ours, perfect], 2)
    assert [failure.loss for failure in found] == [1.0, 1.0]
    right = found[0].relevant[0]
    assert right.ranks == (("dense", None), ("dense", right.ranks[1][1]), ("perfect", 1))
    assert right.why[0].startswith(f"garden/{right.document} · {GARDEN[right.document][0]}")
    assert any("cosine" in line for line in right.why)
    assert found[0].instead == ("no result",)
    assert failure_object(found[0])["better_ndcg@10"] == 1
    assert any("relevant: " in line for line in failure_lines(found[0]))


def test_json_has_the_shape_that_scripts_rely_on(runner: QueryRunner) -> None:
    run = runner.run(DEFAULT)
    found = runs_object([run, run])
    assert set(found) == {"datasets", "mean"}
    first = found["datasets"][0]
    assert {"name", "split", "queries", "metrics", "cpu_ms_per_query"} <= set(first)
    assert (first["name"], first["split"], first["queries"]) == ("garden", "test", len(GRADES))
    assert set(first["metrics"]) == set(METRICS)
    assert found["mean"] == mean_metrics([run])


def test_csv_has_one_line_a_question(runner: QueryRunner) -> None:
    lines = runs_csv([runner.run(DEFAULT)]).splitlines()
    assert len(lines) == 1 + len(GRADES)
    assert lines[0].startswith("dataset,split,setting,query_id,ndcg@10")


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path: Path) -> None:
    documents = {**GARDEN, "evil": ("<script>alert(1)</script>", "Prune apple trees in late winter, never.")}
    questions = {"<b>q</b>": "when to prune apple trees <script>alert(2)</script>", "q2": "lettuce"}
    grades = {"<b>q</b>": {"compost": 1.0}, "q2": {"slug": 1.0}}
    dataset = load(write_collection(tmp_path / "a&b", documents, questions, grades))
    with opened(dataset, tmp_path / "cache", HashEmbedder()) as found:
        runner = QueryRunner(found)
        rows = ablate([runner], settings(DEFAULT))
        perfect = graded_run(dataset, "perfect", {question: list(own) for question, own in grades.items()})
        failures = worst(runner, DEFAULT, [rows[0].runs[0], perfect], 5)
        text = page(rows, failures)
    assert "<b>q</b>" in {failure.question.id for failure in failures}
    assert "&lt;script&gt;alert(2)" in text
    assert text.count("<svg") == 4
    for foreign in ("<script", "<link", "<img", "http://", "https://", "@import", "<b>q</b>"):
        assert foreign not in text
    assert "a&amp;b" in text
    assert "prefers-color-scheme: dark" in text


def test_a_run_from_elsewhere_is_judged_by_the_same_rules() -> None:
    questions = [SimpleNamespace(id="q1"), SimpleNamespace(id="q2")]
    dataset = SimpleNamespace(name="n", split="s", questions=questions, grades={"q1": {"a": 1.0}, "q2": {"a": 1.0}})
    run = graded_run(dataset, "theirs", {"q1": ["a"]})  # type: ignore[arg-type]
    assert run.metrics["p@1"] == (1 + 0) / 2
