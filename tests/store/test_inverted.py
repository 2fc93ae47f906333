"""Runs of the inverted index hold what the forward index holds, however they came about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dowse.errors import CorruptIndexError
from dowse.store.kernels.numpy_kernel import NUMPY
from dowse.store.segments import inverted
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.forward import ForwardReader, ForwardWriter, hash_term
from dowse.store.segments.inverted import InvertedReader, InvertedWriter
from dowse.tokenizer import Terms, Tokenizer

WORDS = ("alpha", "beta", "gamma", "delta")


def chunk(number: int) -> Terms:
    """Chunk n says the words at the bits of n, the first of them twice."""
    said = [word for bit, word in enumerate(WORDS) if number >> bit & 1]
    return Terms(code=[*said, *said[:1]], prose=said, stops=[])


def write(folder: Path, batches: list[int]) -> PartReader:
    part = PartWriter(folder)
    forward, runs, count = ForwardWriter(part), InvertedWriter(part), 0
    for size in batches:
        forward.append([chunk(number) for number in range(count, count + size)])
        count += size
        runs.catch_up(count)
        part.publish(count, count)
    part.close()
    return PartReader(folder)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted, "_TAIL_ROWS", 3)
    monkeypatch.setattr(inverted, "_PIECE_ENTRIES", 7)
    monkeypatch.setattr(inverted, "_MOST_RUNS", 8)
    monkeypatch.setattr(inverted, "_STEP", 4)


@settings(max_examples=30, deadline=None)
@given(batches=st.lists(st.integers(1, 12), min_size=1, max_size=14))
def test_runs_hold_what_the_forward_index_holds(tmp_path_factory: pytest.TempPathFactory, batches: list[int]) -> None:
    part = write(tmp_path_factory.mktemp("part"), batches)
    reader = InvertedReader(part)
    assert sum(batches) - 3 <= reader.covered <= sum(batches)
    hashes = np.array(sorted(hash_term(word, "bm25_code") for word in WORDS), np.uint32)
    found: dict[int, list[tuple[int, int]]] = {each: [] for each in hashes.tolist()}
    assert len(reader.runs) <= 8
    for run in reader.runs:
        for each, start, end in zip(hashes.tolist(), *NUMPY.find(run, hashes), strict=True):
            found[each] += zip(run.slots[start:end].tolist(), run.counts[start:end].tolist(), strict=True)
    for bit, word in enumerate(WORDS):
        first_bits = range(1 << bit, reader.covered) if reader.covered > 1 << bit else range(0)
        holding = [number for number in first_bits if number >> bit & 1]
        counts = [2 if number & -number == 1 << bit else 1 for number in holding]
        assert found[hash_term(word, "bm25_code")] == list(zip(holding, counts, strict=True))
    assert not list(reader.disagreeing(ForwardReader(part, NUMPY).entries))


def test_runs_that_were_settled_grow_shorter_to_the_right_and_hold_the_same(tmp_path: Path) -> None:
    part = PartWriter(tmp_path)
    forward, runs = ForwardWriter(part), InvertedWriter(part)
    for first in range(0, 70, 7):
        forward.append([chunk(number) for number in range(first, first + 7)])
        runs.catch_up(first + 7)
    assert runs.merge()
    assert not runs.merge()
    part.publish(70, 1)
    reader = InvertedReader(PartReader(tmp_path))
    assert len(reader.runs) == 1
    assert not list(reader.disagreeing(ForwardReader(PartReader(tmp_path), NUMPY).entries))


def test_terms_that_share_half_of_their_hash_are_told_apart_and_keep_their_order() -> None:
    terms = [2**32 - 1, 2**16 + 1, 1, 2**16, 2**8, 3, 0, 2**31] * 2
    slots = np.arange(len(terms), dtype=np.uint32)
    found = inverted._by_term(np.array(terms, np.uint32), slots, (slots + 5).astype(np.uint16))
    rows = sorted((term, slot, slot + 5) for slot, term in enumerate(terms))
    assert list(zip(*(each.tolist() for each in found), strict=True)) == rows


def test_runs_merged_at_once_are_as_if_made_as_one(tmp_path: Path) -> None:
    for name, sizes in (("many", (7, 8, 9, 10, 6)), ("one", (40,))):
        part = PartWriter(tmp_path / name)
        forward, runs, count = ForwardWriter(part), InvertedWriter(part), 0
        for size in sizes:
            forward.append([chunk(number) for number in range(count, count + size)])
            count += size
            runs.catch_up(count)
        assert runs.merge() == (len(sizes) > 1)
        part.publish(count, 1)
        part.close()
    for kind in ("terms", "ends", "slots", "counts"):
        assert (tmp_path / f"many/run-0-40.{kind}").read_bytes() == (tmp_path / f"one/run-0-40.{kind}").read_bytes()


def test_a_long_run_is_not_merged_with_a_short_one(tmp_path: Path) -> None:
    part = PartWriter(tmp_path)
    forward, runs = ForwardWriter(part), InvertedWriter(part)
    for size in (40, 8, 2):
        forward.append([chunk(number) for number in range(size)])
        runs.catch_up(part.size("ends") // 8)
    assert not runs.merge()


def test_a_term_that_no_chunk_holds_has_an_empty_span(tmp_path: Path) -> None:
    reader = InvertedReader(write(tmp_path, [16]))
    hashes = np.array([0, hash_term("omega", "bm25_nlp"), 2**32 - 1], np.uint32)
    starts, ends = NUMPY.find(reader.runs[0], np.sort(hashes))
    assert starts.tolist() == ends.tolist()


def test_few_new_chunks_write_no_run(tmp_path: Path) -> None:
    part = write(tmp_path, [10, 3])
    assert InvertedReader(part).covered == 10
    assert not list(tmp_path.glob("run-10-*"))


def test_merged_runs_leave_no_file_behind(tmp_path: Path) -> None:
    part = write(tmp_path, [4] * 12)
    assert {path.name for path in tmp_path.iterdir()} == {*part.state.files, "state.jsonl"}
    assert InvertedReader(part).covered == 48


def test_what_a_crashed_writer_left_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, [10])
    (tmp_path / "run-10-20.terms").write_bytes(b"half")
    InvertedWriter(PartWriter(tmp_path))
    assert not (tmp_path / "run-10-20.terms").exists()


def test_a_missing_run_is_noticed(tmp_path: Path) -> None:
    part = write(tmp_path, [10, 10])
    files = {name: each for name, each in part.state.files.items() if not name.startswith("run-0-")}
    assert len(files) < len(part.state.files)
    with pytest.raises(CorruptIndexError, match="is missing"):
        InvertedReader(PartReader(tmp_path, replace(part.state, files=files)))


def test_a_wrong_entry_is_named(tmp_path: Path) -> None:
    part = write(tmp_path, [10])
    counts = tmp_path / "run-0-10.counts"
    counts.write_bytes(b"\x09\x00" + counts.read_bytes()[2:])
    entries = ForwardReader(part, NUMPY).entries
    assert list(InvertedReader(part).disagreeing(entries)) == ["words of the rows 0 to 10"]


@given(st.lists(st.text(st.sampled_from("abyTHE_$9 é。Σ\n"), max_size=60), min_size=1, max_size=5))
def test_texts_are_stored_as_their_terms_are(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    by_terms, by_texts = (PartWriter(tmp_path_factory.mktemp("rows")) for _ in range(2))
    tokenizer = Tokenizer()
    ForwardWriter(by_terms).append([tokenizer(text) for text in texts])
    ForwardWriter(by_texts).append_texts(texts)
    for part in (by_terms, by_texts):
        part.publish(len(texts), 1)
    for name, dtype in (("terms", "<u4"), ("counts", "<u2"), ("ends", "<i8"), ("lengths", "<u4")):
        one, other = (PartReader(part.folder).array(name, dtype).tolist() for part in (by_terms, by_texts))
        assert one == other
    lengths = PartReader(by_texts.folder).array("lengths", "<u4", 2).tolist()
    assert lengths == [[len(tokenizer(text).code), len(tokenizer(text).prose)] for text in texts]
    for part in (by_terms, by_texts):
        part.close()
