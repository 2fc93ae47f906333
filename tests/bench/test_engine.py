"""The benchmarks measure what they say: lines, percentiles, corpora and vectors, without network, peers or a clock."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # bench/ is beside src/, not in the package

from bench.figures import Figure, percentile, save  # noqa: E402
from bench.query_timing import Times  # noqa: E402

from bench import cache, corpus, plot, queries, report, update_rows, vectors  # noqa: E402
from dowse.identity import chunk_id, document_id, text_hash  # noqa: E402
from dowse.types import Chunk, Document  # noqa: E402
from values import replace  # noqa: E402


def _document(*texts: str) -> Document:
    name = document_id("s", "a.txt")
    chunks = [Chunk(chunk_id("s/a.txt", "chunk", t), name, t, "DOC_PAGE", "s/a.txt", file_path="a.txt") for t in texts]
    return Document(name, "s", "a.txt", "a.txt", text_hash("".join(texts)), tuple(chunks))


# --- figures ----------------------------------------------------------------------------------------


def test_a_bar_is_a_lower_limit_unless_it_is_an_upper_one() -> None:
    assert Figure("x", 3.0, "times", bar=3, goal=5).verdict == "pass"
    assert Figure("x", 2.9, "times", bar=3, goal=5).verdict == "fail"
    assert Figure("x", 0.8, "s", bar=0.8, at_most=True).verdict == "pass"
    assert Figure("x", 0.81, "s", bar=0.8, at_most=True).verdict == "fail"
    assert Figure("x", 1.0, "s").verdict == "-"


def test_a_line_has_name_figure_bar_goal_and_verdict() -> None:
    line = Figure("one leg, peer / Dowse", 1234.5, "times", 500, 1000).line
    assert line.split() == ["one", "leg,", "peer", "/", "Dowse", "1,234", "times", "≥", "500", "≥", "1,000", "pass"]


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_this_share_does_not_exceed(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


def test_p99_of_a_hundred_is_the_ninety_ninth() -> None:
    assert Times(tuple(map(float, range(1, 101))), (1.0,)).p99 == 99.0


def test_saved_results_can_be_read_again(tmp_path: Path) -> None:
    save(tmp_path / "r.json", 10, [Figure("x", 1.0, "ms", 2, 1, at_most=True)], {"a": 1}, {})
    found = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert found["figures"][0]["verdict"] == "pass"
    assert found["chunks"] == 10
    assert found["machine"]["cores"]


# --- corpus and questions ---------------------------------------------------------------------------


def test_filters_take_a_tenth_and_a_two_hundredth_of_the_chunks() -> None:
    marks = [dict(corpus.marked(replace(_document("x").chunks[0], id=f"{n:016x}")).meta) for n in range(20_000)]
    tenth = sum(each["tenth"] == "t3" for each in marks) / len(marks)
    part = sum(each["part"] == "p7" for each in marks) / len(marks)
    assert tenth == pytest.approx(1 / corpus.TENTHS, rel=0.1)
    assert part == pytest.approx(1 / corpus.PARTS, rel=0.35)
    both = sum(each["tenth"] == "t3" and each["part"] == "p7" for each in marks) / len(marks)
    assert both < 2 / (corpus.TENTHS * corpus.PARTS)  # neither field tells the other


def test_a_rotated_document_has_four_fifths_of_the_same_words_under_other_ids() -> None:
    document = _document(" ".join(f"word{n}" for n in range(1000)))
    again = corpus.rotated(document, 1)
    words, kept = set(document.chunks[0].text.split()), again.chunks[0].text.split()
    assert set(kept) < words
    assert len(kept) == pytest.approx(1000 * corpus.KEPT_WORDS, rel=0.1)
    assert again.chunks[0].id != document.chunks[0].id
    assert again.id != document.id
    assert again == corpus.rotated(document, 1)
    assert again != corpus.rotated(document, 2)


def test_the_same_texts_give_the_same_two_hundred_questions() -> None:
    texts = [
        f'def get_user_{n}(user_id):\n    """Return the user number {n} of this small table."""\n'
        f"    return fetchRow(user_id, {n}) or the other way around here it goes\n"
        for n in range(400)
    ]
    asked = queries.drawn(texts)
    assert len(asked) == 4 * queries.EACH
    assert asked == queries.drawn(texts)
    assert sum(each.startswith("how do I ") for each in asked) == queries.EACH


def test_fresh_chunks_share_a_word_that_no_other_round_has() -> None:
    first, second = update_rows.fresh_rows(1), update_rows.fresh_rows(2)
    assert len(first) == 20
    assert [row["id"] for row in first] == [row["id"] for row in second]
    words = [set(row["text"].split()) for row in first]
    assert set.intersection(*words) - {word for row in second for word in row["text"].split()} >= {"zebraword1"}


# --- vectors ----------------------------------------------------------------------------------------


def _clumps(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(40, 32))
    own = np.random.default_rng(seed)
    drawn = centres[own.integers(0, 40, rows)] + own.normal(size=(rows, 32))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def test_grown_vectors_have_length_one_and_are_the_same_every_time() -> None:
    real = _clumps(500, 1)
    found = vectors.grown(real, 300)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (found == vectors.grown(real, 300)).all()
    assert not (found[:, None] == real[None]).all(axis=2).any()


def test_likeness_tells_the_like_from_the_unlike() -> None:
    real, asked = _clumps(800, 1), _clumps(100, 3)
    noise = np.random.default_rng(0).normal(size=real.shape).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    like, unlike = vectors.likeness(real, _clumps(800, 2), asked), vectors.likeness(real, noise, asked)
    assert like["cosine@10 ks"] < 0.2
    assert unlike["cosine@10 ks"] > 0.5
    assert vectors.likeness(real, real, asked)["cosine@1 ks"] == 0


# --- plots and adapters -----------------------------------------------------------------------------


def test_what_is_drawn_beside_peers_is_the_largest_run_that_has_some() -> None:
    def run(chunks: int, *engines: str) -> dict[str, Any]:
        return {"chunks": chunks, "details": {"rss_mb": dict.fromkeys(engines, 1.0)}}

    own = ("dowse", "dowse numpy")
    runs = [run(10, *own, "lancedb"), run(100, *own, "lancedb"), run(1000, *own)]
    assert plot.beside_peers(runs) == runs[1]
    assert plot.beside_peers(runs[2:]) is None


def test_plots_are_well_formed_and_name_what_they_show() -> None:
    drawings = (
        plot.lines("a < b", "chunks", "ms", {"dowse": [(10, 1.0), (100, 2.5)], "other": [(10, 3.0)]}),
        plot.bars("title", {"dowse": {"none": 1.0, "10 %": 0.5}, "other": {"none": 20.0}}),
        plot.scatter("title", "ms", "nDCG", {"dowse": (5.0, 0.6), "other": (50.0, 0.5)}),
    )
    for drawing in drawings:
        texts = [each.text for each in ElementTree.parse(io.StringIO(drawing)).iter() if each.tag.endswith("text")]
        assert any("dowse" in (text or "") for text in texts)
        assert any("other" in (text or "") for text in texts)


def test_a_table_takes_its_place_and_leaves_the_words_around_it() -> None:
    page = "before\n<!-- a -->\nold\n<!-- end -->\nbetween\n<!-- b -->\n<!-- end -->\nafter\n"
    once = report.filled(page, {"a": "| new |", "b": "more"})
    assert once == "before\n<!-- a -->\n| new |\n<!-- end -->\nbetween\n<!-- b -->\nmore\n<!-- end -->\nafter\n"
    assert report.filled(once, {"a": "| new |", "b": "more"}) == once
    with pytest.raises(SystemExit, match="no place for the table 'c'"):
        report.filled(page, {"c": "x"})


def test_the_page_has_a_place_for_every_table() -> None:
    page = report.PAGE.read_text("utf-8")
    names = ("machine", "bars", "bars at a million", "growth", "peers", "stages", "quality")
    assert report.filled(page, dict.fromkeys(names, "x")).count("\nx\n<!-- end -->") == len(names)


def test_a_ratio_compares_the_questions_that_both_were_asked() -> None:
    ours, theirs = Times((1.0, 1.0, 9.0, 9.0, 9.0), (1.0,)), Times((4.0, 4.0), (1.0,))
    assert theirs.times_of(ours) == 4.0 / 1.0


def test_an_adapter_answers_json_lines_with_what_its_engine_returns() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'bench' / 'adapters')!r})\n"
        "from json_server import serve, each_timed\n"
        "class Engine:\n"
        "    def double(self, numbers):\n"
        "        print('noise that is no reply')\n"
        "        return each_timed(lambda n: 2 * n, numbers)\n"
        "serve(Engine())\n"
    )
    asked = json.dumps({"do": "double", "numbers": [1, 2, 3]}) + "\n"
    done = subprocess.run([sys.executable, "-c", script], input=asked, capture_output=True, text=True, check=True)
    reply = json.loads(done.stdout)
    assert reply["value"]["found"] == [2, 4, 6]
    assert len(reply["value"]["cpu_ms"]) == 3
    assert reply["cpu_s"] >= 0
    assert reply["rss_mb"] > 1


def test_the_cache_can_be_put_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    place = cache.folder("a", "b")
    assert place == tmp_path / "a" / "b"
    (place / "file").write_bytes(b"12345")
    assert cache.size_bytes(tmp_path) == 5
