"""`dowse eval`, `tune` and `judge` from the outside: what is typed, what is printed, what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from beir_folders import GARDEN, GRADES, QUESTIONS, write_collection
from dowse.cli.main import cli
from dowse.evaluate import judgments as feedback

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DOWSE_CONFIG", "/dev/null")
    monkeypatch.setenv("DOWSE_EMBEDDER", "hash")
    monkeypatch.chdir(tmp_path)

    def invoke(*args: str | Path) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="dowse")

    return invoke


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    return write_collection(tmp_path / "garden")


def measured(run: Run, *args: str | Path) -> dict[str, Any]:
    result = run("eval", "--embedder", "hash", "--cache", "cache", "--json", *args)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def notes(tmp_path: Path, run: Run) -> Path:
    """An index of files, one a document of the garden."""
    for name, (title, text) in GARDEN.items():
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / f"{name}.txt").write_text(f"{title}\n\n{text}\n")
    result = run("index", "notes", "--embedder", "hash", "-q")
    assert result.exit_code == 0, result.output
    return tmp_path / "notes"


def test_eval_prints_figures_by_collection_and_their_mean(run: Run, garden: Path, tmp_path: Path) -> None:
    write_collection(tmp_path / "other")
    result = run("eval", garden, tmp_path / "other", "--embedder", "hash", "--cache", "cache")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0][:4] == ["dataset", "split", "queries", "ndcg@10"]
    assert [row[0] for row in rows[1:]] == ["garden", "other", "mean"]


def test_eval_json_has_datasets_and_mean(run: Run, garden: Path) -> None:
    found = measured(run, garden)
    (dataset,) = found["datasets"]
    assert (dataset["name"], dataset["split"], dataset["queries"]) == ("garden", "test", len(QUESTIONS))
    assert found["mean"] == dataset["metrics"]
    assert dataset["cpu_ms_per_query"] > 0


def test_eval_takes_the_ways_of_asking(run: Run, garden: Path) -> None:
    for flags in (["--set", "legs=bm25_nlp"], ["--fusion", "rrf"], ["--set", "alpha=0.2"], ["--rerank", "heuristic"]):
        assert measured(run, garden, *flags)["datasets"][0]["setting"] == "as asked"
    assert measured(run, garden, "--limit-queries", "2")["datasets"][0]["queries"] == 2


def test_eval_takes_the_constants_of_bm25(run: Run, tmp_path: Path) -> None:
    # One term: 9/(9 + 1.2·(.25 + .75·36/18.5)) = .81 against 1/(1 + 1.2·(.25 + .75·1/18.5)) = .74; at b 1 .79 and .94.
    documents = {"often": ("", "slug " * 9 + "and a great many other words " * 9), "once": ("", "a slug")}
    place = write_collection(tmp_path / "length", documents, {"q": "slug"}, {"q": {"often": 1.0}})
    found = [measured(run, place, "--set", "legs=bm25_nlp", *flags) for flags in ([], ["--b", "1"])]
    assert [each["mean"]["p@1"] for each in found] == [1, 0]
    assert [each["datasets"][0]["setting"] for each in found] == ["as asked", "as asked"]
    # Two terms, idf .18 and .69: .18·6/(6 + k1) against (.18 + .69)/(1 + k1); six of one are more only for a large k1.
    documents = {"one": ("", "slug " * 6), "both": ("", "slug snail")}
    place = write_collection(tmp_path / "count", documents, {"q": "slug snail"}, {"q": {"one": 1.0}})
    found = [measured(run, place, "--set", "legs=bm25_nlp", "--b", "0", *flags) for flags in ([], ["--k1", "100"])]
    assert [each["mean"]["p@1"] for each in found] == [0, 1]


def test_the_ablation_keeps_the_constants_of_bm25(run: Run, tmp_path: Path) -> None:
    documents = {"often": ("", "slug " * 9 + "and a great many other words " * 9), "once": ("", "a slug")}
    place = write_collection(tmp_path / "length", documents, {"q": "slug"}, {"q": {"often": 1.0}})
    right, second = 1.0, 1 / log2(2 + 1)  # at the first place and at the second
    for flags, expected in (([], right), (["--b", "1"], second)):
        rows = measured(run, place, "--ablate", *flags)["ablation"]
        assert {row["setting"]: row["ndcg@10"] for row in rows}["prose"] == pytest.approx(expected)


def test_eval_ablation_and_worst_are_in_the_json(run: Run, garden: Path) -> None:
    found = measured(run, garden, "--ablate", "--worst", "3")
    assert found["ablation"][0]["difference"] is None
    assert {"mean", "low", "high", "significant"} == set(found["ablation"][1]["difference"])
    assert len(found["worst"]) <= 3


def test_eval_ablation_is_printed_with_intervals(run: Run, garden: Path) -> None:
    result = run("eval", garden, "--embedder", "hash", "--cache", "cache", "--ablate", "--worst", "2")
    assert result.exit_code == 0, result.output
    assert "rrf 60, three equal legs" in result.stdout
    assert "not significant" in result.stdout


def test_eval_csv_is_one_line_a_question(run: Run, garden: Path) -> None:
    result = run("eval", garden, "--embedder", "hash", "--cache", "cache", "--csv")
    assert len(result.stdout.splitlines()) == 1 + len(QUESTIONS)


def test_eval_report_is_written(run: Run, garden: Path, tmp_path: Path) -> None:
    measured(run, garden, "--report", "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_a_saved_run_is_judged_as_it_was(run: Run, garden: Path) -> None:
    ours = measured(run, garden, "--save-run", "ours.run")
    again = measured(run, garden, "--run", "ours.run")
    assert again["run"]["metrics"] == ours["datasets"][0]["metrics"]
    assert again["run"]["difference"]["mean"] == 0


def test_a_run_of_other_questions_is_refused(run: Run, garden: Path, tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("nobody Q0 slug 1 1.0 x\n")
    result = run("eval", garden, "--embedder", "hash", "--cache", "cache", "--run", "x.run")
    assert result.exit_code == 2
    assert "has no query of garden" in result.stderr


def test_eval_of_nothing_says_what_to_type(run: Run) -> None:
    result = run("eval")
    assert result.exit_code == 2
    assert "missing input; add a dataset folder" in result.stderr


def test_odd_ids_are_told_and_not_fatal(run: Run, tmp_path: Path) -> None:
    grades = {**GRADES, "q1": {"prune": 1.0, "gone": 1.0}}
    folder = write_collection(tmp_path / "odd", grades=grades)
    result = run("eval", folder, "--embedder", "hash", "--cache", "cache", "--json")
    assert result.exit_code == 0
    assert "1 judged documents that are not in the corpus" in result.stderr


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["eval", "nowhere"], 1, "no dataset folder"),
        (["eval", "garden", "--split", "best"], 1, "choose from test with --split"),
        (["eval", "garden", "--limit-queries", "0"], 2, "give 1 or more"),
        (["eval", "garden", "--b", "2"], 2, "is not in the range 0<=x<=1"),
        (["eval", "garden", "--k1", "-1"], 2, "is not in the range x>=0"),
        (["eval", "garden", "--profile", "nobody"], 2, "unknown profile 'nobody'"),
        (["eval", "garden", "--report", "no/such/r.html"], 2, "cannot write no/such/r.html"),
        (["eval", "garden", "--embedder", "no-model"], 1, "no model 'no-model'"),
        (["eval", "--judged"], 3, "no index"),
        (["tune"], 2, "missing input"),
        (["tune", "garden"], 2, "tuning needs at least 10"),
        (["tune", "garden", "--save", "default"], 2, "is a built-in profile"),
        (["judge"], 3, "no index"),
    ],
)
def test_what_is_wrong_is_told(run: Run, garden: Path, args: list[str], code: int, told: str) -> None:
    extra = [] if args[0] == "judge" else ["--cache", "cache"]
    extra += ["--embedder", "hash"] if args[0] != "judge" and "--embedder" not in args else []
    result = run(*args, *extra)
    assert result.exit_code == code, result.output
    assert told in result.stderr


def test_judgments_of_an_index_name_files_lines_and_chunks(run: Run, notes: Path, tmp_path: Path) -> None:
    hits = json.loads(run("search", "lettuce at night", "--json").stdout)["chunks"]
    (tmp_path / "judgments.tsv").write_text(
        "when to prune apple trees\tnotes/prune.txt\t2\n"
        "climbing beans\tnotes/bean.txt:3\t1\n"
        f"what eats lettuce at night\t{hits[0]['id']}\t1\n"
        "what eats lettuce at night\tnotes/gone.txt\t1\n"
    )
    result = run("eval", "judgments.tsv", "--embedder", "hash", "--json")
    assert result.exit_code == 0, result.output
    (dataset,) = json.loads(result.stdout)["datasets"]
    assert (dataset["name"], dataset["split"], dataset["queries"]) == ("judgments", "judgments", 3)
    assert dataset["metrics"]["recall@100"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert "1 judged documents that are not in the corpus, counted as not found (notes/gone.txt)" in result.stderr


def test_worst_names_the_wrong_result_of_an_index_by_its_place(run: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "judgments.tsv").write_text("slugs eat lettuce at night\tnotes/bean.txt\t1\n")
    result = run("eval", "judgments.tsv", "--embedder", "hash", "--worst", "1", "--set", "legs=bm25_nlp")
    wrong = result.stdout.partition("not relevant: ")[2].splitlines()
    assert wrong[0].endswith(" is first")
    assert wrong[1].strip().startswith("notes/slug.txt:1-3 · slug.txt · Slugs Slugs eat young lettuce")
    assert "notes/bean.txt:1-3 · bean.txt · Beans" in result.stdout  # no leg found it


def test_cut_is_an_option_of_eval(run: Run, garden: Path) -> None:
    found = measured(run, garden, "--cut")
    assert found["datasets"][0]["queries"] == len(QUESTIONS)


def test_an_index_of_another_model_is_refused_with_the_fix(run: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "judgments.tsv").write_text("beans\tnotes/bean.txt\t1\n")
    result = run("eval", "judgments.tsv", "--embedder", "hash:64")
    assert result.exit_code == 2
    assert "has vectors of hash-256, not of hash-64; use --embedder hash-256" in result.stderr


@pytest.mark.parametrize("line", ["beans\tnotes/bean.txt", "beans\tnotes/bean.txt\tgood", "\tnotes/bean.txt\t1"])
def test_a_judgment_that_cannot_be_read_is_told_with_its_line(run: Run, notes: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "judgments.tsv").write_text(line + "\n")
    result = run("eval", "judgments.tsv", "--embedder", "hash")
    assert result.exit_code == 2
    assert "judgments.tsv:1" in result.stderr


def test_what_is_judged_can_be_listed_measured_exported_and_imported(run: Run, notes: Path, tmp_path: Path) -> None:
    hits = json.loads(run("search", "lettuce at night", "--json").stdout)["chunks"]
    kept = run("judge", "lettuce", "at", "night", "--grade", f"{hits[0]['id']}=2", "--grade", f"{hits[1]['id']}=0")
    assert kept.exit_code == 0, kept.output
    assert "Stored 2 judgments" in kept.stdout
    assert f"lettuce at night\t{hits[0]['id']}\t2" in run("judge", "--list").stdout
    assert json.loads(run("eval", "--judged", "--embedder", "hash", "--json").stdout)["mean"]["ndcg@10"] == 1
    assert run("judge", "--export", "ours.qrels").exit_code == 0
    assert run("judge", "lettuce", "at", "night", "--forget").stdout == "Deleted 2 judgments.\n"
    assert run("eval", "--judged", "--embedder", "hash").exit_code == 1
    assert run("judge", "--import", "ours.qrels").stdout == "Imported 2 judgments.\n"
    assert {(each.query, each.target): each.grade for each in feedback.kept(tmp_path / ".dowse")} == {
        ("lettuce at night", hits[0]["id"]): 2,
        ("lettuce at night", hits[1]["id"]): 0,
    }


def test_a_second_judgment_replaces_the_first(run: Run, notes: Path, tmp_path: Path) -> None:
    hit = json.loads(run("search", "beans", "--json").stdout)["chunks"][0]
    run("judge", "beans", "--grade", f"{hit['id']}=0")
    run("judge", "beans", "--grade", f"{hit['id']}=1")
    assert [each.grade for each in feedback.kept(tmp_path / ".dowse")] == [1]


def test_judging_a_chunk_that_is_not_there_is_told(run: Run, notes: Path) -> None:
    result = run("judge", "beans", "--grade", "0000000000000000=1")
    assert result.exit_code == 1
    assert "0000000000000000 is not in the index" in result.stderr


def test_judging_without_a_terminal_says_how(run: Run, notes: Path) -> None:
    result = run("judge", "beans")
    assert result.exit_code == 2
    assert "--grade ID=1" in result.stderr


def test_tune_keeps_the_default_and_writes_nothing_without_a_gain(run: Run, tmp_path: Path) -> None:
    questions = {f"q{number}": f"{QUESTIONS['q1']} {number}" for number in range(12)}
    grades = {each: {"prune": 1.0} for each in questions}
    folder = write_collection(tmp_path / "easy", questions=questions, grades=grades)
    result = run("tune", folder, "--embedder", "hash", "--cache", "cache", "--save", "ours", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["keep_default"] is True
    assert not (tmp_path / "dowse.toml").exists()
