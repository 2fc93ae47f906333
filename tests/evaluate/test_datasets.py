"""A collection is read whole; what is odd is counted, and what is wrong is told with the fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from beir_folders import GARDEN, GRADES, QUESTIONS, write_collection
from dowse.errors import BadRequestError, NotFoundError
from dowse.evaluate.datasets import load


def test_plain_and_gzipped_files_give_the_same_collection(tmp_path: Path) -> None:
    plain = load(write_collection(tmp_path / "a" / "garden"))
    zipped = load(write_collection(tmp_path / "b" / "garden", zipped=True))
    assert (plain.documents, plain.questions, plain.grades) == (zipped.documents, zipped.questions, zipped.grades)
    assert plain.content_hash == zipped.content_hash
    assert (plain.name, plain.split) == ("garden", "test")
    assert len(plain.documents) == len(GARDEN)
    assert plain.grades == GRADES
    assert plain.notes == ()


def test_another_text_is_another_collection(tmp_path: Path) -> None:
    other = {**GARDEN, "bean": ("Beans", "Bush beans need no poles.")}
    hashes = {
        load(write_collection(tmp_path / "a")).content_hash,
        load(write_collection(tmp_path / "b", documents=other)).content_hash,
    }
    assert len(hashes) == 2


def test_a_text_that_moves_to_the_title_is_another_collection(tmp_path: Path) -> None:
    one = load(write_collection(tmp_path / "a", {"x": ("ab", "c")}, {"q": "c"}, {"q": {"x": 1.0}}))
    other = load(write_collection(tmp_path / "b", {"x": ("a", "bc")}, {"q": "c"}, {"q": {"x": 1.0}}))
    assert one.content_hash != other.content_hash


def test_the_test_split_is_taken_first_and_told(tmp_path: Path) -> None:
    write_collection(tmp_path, split="train")
    write_collection(tmp_path, split="test")
    found = load(tmp_path)
    assert found.split == "test"
    assert "test, train" in found.notes[0]
    assert load(tmp_path, "train").split == "train"


def test_an_unknown_split_names_those_there_are(tmp_path: Path) -> None:
    write_collection(tmp_path, split="dev")
    with pytest.raises(NotFoundError, match=r"no split 'best'; choose from dev with --split"):
        load(tmp_path, "best")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (write_collection(tmp_path) / name).unlink()
    with pytest.raises(NotFoundError, match=f"has no {name}"):
        load(tmp_path)


def test_a_missing_folder_and_missing_judgments_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no dataset folder"):
        load(tmp_path / "nowhere")
    (write_collection(tmp_path) / "qrels" / "test.tsv").unlink()
    with pytest.raises(NotFoundError, match=r"has no \.tsv file"):
        load(tmp_path)


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    write_collection(tmp_path, grades={})
    with pytest.raises(BadRequestError, match="holds no judgments; choose another split"):
        load(tmp_path)


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    write_collection(tmp_path, documents={})
    with pytest.raises(BadRequestError, match=r"corpus\.jsonl is empty"):
        load(tmp_path)


def test_unknown_ids_are_counted_and_not_fatal(tmp_path: Path) -> None:
    grades = {**GRADES, "q1": {"prune": 2.0, "gone": 1.0}, "q9": {"prune": 1.0}}
    found = load(write_collection(tmp_path, grades=grades))
    assert len(found.questions) == len(QUESTIONS)
    assert found.notes == (
        "1 judged queries that are not in queries.jsonl, skipped (q9)",
        "1 judged documents that are not in the corpus, counted as not found (gone)",
    )


def test_questions_without_a_right_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    grades = {each: own for each, own in GRADES.items() if each != "q1"} | {"q2": {"slug": 0.0}}
    found = load(write_collection(tmp_path, grades=grades))
    assert {each.id for each in found.questions} == {"q3", "q4", "q5", "q6"}
    assert found.notes == ("2 queries without a relevant document, skipped (q1, q2)",)


def test_judgments_of_other_questions_only_are_an_error(tmp_path: Path) -> None:
    write_collection(tmp_path, grades={"other": {"bean": 1.0}})
    with pytest.raises(BadRequestError, match="no relevant document for any query"):
        load(tmp_path)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
def test_an_id_that_is_there_twice_is_an_error_with_its_line(tmp_path: Path, file: str) -> None:
    place = write_collection(tmp_path) / file
    lines = place.read_text().splitlines()
    place.write_text("\n".join([*lines, lines[0]]) + "\n")
    with pytest.raises(BadRequestError, match=rf"{file}:{len(lines) + 1}: id .* is used twice"):
        load(tmp_path)


def test_a_pair_that_is_judged_twice_is_an_error(tmp_path: Path) -> None:
    place = write_collection(tmp_path) / "qrels" / "test.tsv"
    place.write_text(place.read_text() + "q1\tprune\t0\n")
    with pytest.raises(BadRequestError, match="second grade of 'prune' for 'q1'"):
        load(tmp_path)


@pytest.mark.parametrize("grade", ["good", "", "nan", "inf", "1e99"])
def test_a_grade_that_is_no_number_is_an_error_with_its_line(tmp_path: Path, grade: str) -> None:
    place = write_collection(tmp_path) / "qrels" / "test.tsv"
    place.write_text(f"query-id\tcorpus-id\tscore\nq1\tprune\t{grade}\n")
    with pytest.raises(BadRequestError, match=rf"test\.tsv:2: grade {grade!r}"):
        load(tmp_path)


def test_judgments_with_the_wrong_fields_are_an_error(tmp_path: Path) -> None:
    place = write_collection(tmp_path) / "qrels" / "test.tsv"
    place.write_text("q1 prune 1\n")
    with pytest.raises(BadRequestError, match=r"test\.tsv:1 does not have 3 fields; write: query-id<TAB>"):
        load(tmp_path)


@pytest.mark.parametrize("line", ['{"_id": "x"}', '{"text": "x"}', "not json", '{"_id": 3, "text": "x"}', "[]"])
def test_a_line_that_is_no_document_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    (write_collection(tmp_path) / "corpus.jsonl").write_text(line + "\n")
    with pytest.raises(BadRequestError, match=r"corpus\.jsonl:1: "):
        load(tmp_path)


def test_a_damaged_gzip_file_is_an_error(tmp_path: Path) -> None:
    file = write_collection(tmp_path, zipped=True) / "corpus.jsonl.gz"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(BadRequestError, match=r"cannot read .*corpus\.jsonl\.gz"):
        load(tmp_path)


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    (write_collection(tmp_path) / "queries.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadRequestError, match="not valid UTF-8"):
        load(tmp_path)


def test_a_missing_or_null_title_is_none(tmp_path: Path) -> None:
    folder = write_collection(tmp_path)
    rows = [{"_id": each, "title": None, "text": "words"} for each in GARDEN]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert {each.title for each in load(folder).documents} == {""}


def test_a_limit_takes_the_same_questions_every_time(tmp_path: Path) -> None:
    found = load(write_collection(tmp_path))
    two, three = found.limited(2), found.limited(3)
    assert two.questions == found.limited(2).questions
    assert set(two.questions) < set(three.questions) < set(found.questions)
    assert found.limited(None) is found
    with pytest.raises(BadRequestError, match="--limit-queries is 0"):
        found.limited(0)
