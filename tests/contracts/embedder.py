"""What every embedder must do: a test class inherits EmbedderContract and gives it an `embedder` fixture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dowse.ports import Embedder

PASSAGES = (
    "def connect(host, port): open a TCP socket to the database server and return it",
    "The cat slept on the warm windowsill all afternoon.",
    "Rotate the signing keys every ninety days; the runbook lists each step.",
    "Rain is expected over the northern hills tomorrow morning.",
    "",
    "x",
)
ODD_TEXTS = (
    "",
    " \n\t ",
    "\x00\x01",
    "naïve façade 数据库 🦆 \u202e",
    "half a character \ud83d",
    "a" * 10_000,
    "\n".join("        " * 8 + "pass" for _ in range(200)),
)


class EmbedderContract:
    """Inherit, and define a fixture `embedder`. Set `knows_words` where texts that share words must be near."""

    knows_words = True

    def test_model_has_a_name_and_a_dimension(self, embedder: Embedder) -> None:
        assert embedder.model
        assert embedder.dimension > 0

    def test_one_unit_float32_row_per_text(self, embedder: Embedder) -> None:
        matrix = embedder.embed(PASSAGES, role="chunk")
        assert matrix.shape == (len(PASSAGES), embedder.dimension)
        assert matrix.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)

    def test_no_texts_give_no_rows(self, embedder: Embedder) -> None:
        matrix = embedder.embed([], role="chunk")
        assert matrix.shape == (0, embedder.dimension)
        assert matrix.dtype == np.float32

    def test_rows_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        forwards = embedder.embed(PASSAGES, role="chunk")
        backwards = embedder.embed(PASSAGES[::-1], role="chunk")
        assert _cosines(forwards, backwards[::-1]).min() > 0.9999

    def test_neighbours_do_not_matter(self, embedder: Embedder) -> None:
        together = embedder.embed([*PASSAGES, "loud " * 300], role="chunk")[: len(PASSAGES)]
        alone = np.concatenate([embedder.embed([text], role="chunk") for text in PASSAGES])
        assert _cosines(together, alone).min() > 0.9999

    def test_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        first, second = embedder.embed([PASSAGES[0], PASSAGES[0]], role="chunk")
        assert float(first @ second) > 0.9999

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: repr(text[:12]))
    def test_odd_texts_have_vectors(self, embedder: Embedder, text: str) -> None:
        matrix = embedder.embed([text], role="chunk")
        assert np.linalg.norm(matrix) == pytest.approx(1, abs=1e-5)

    def test_a_text_of_ten_thousand_words_has_a_vector(self, embedder: Embedder) -> None:
        text = " ".join(f"word{number}" for number in range(10_000))
        assert embedder.embed([text], role="chunk").shape == (1, embedder.dimension)

    def test_both_roles_are_accepted(self, embedder: Embedder) -> None:
        for role in ("query", "chunk"):
            assert embedder.embed(["where are keys rotated?"], role=role).shape == (1, embedder.dimension)  # type: ignore[arg-type]

    def test_threads_agree_with_one_thread(self, embedder: Embedder) -> None:
        texts = [f"{text} {number}" for number in range(4) for text in PASSAGES]
        expected = embedder.embed(texts, role="chunk")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text: embedder.embed([text], role="chunk")[0], texts))
        assert _cosines(np.stack(found), expected).min() > 0.9999

    def test_a_shared_rare_word_brings_texts_together(self, embedder: Embedder) -> None:
        if not self.knows_words:
            pytest.skip("this embedder's weights mean nothing")
        query = embedder.embed(["signing keys"], role="query")[0]
        scores = embedder.embed(PASSAGES[:4], role="chunk") @ query
        assert int(np.argmax(scores)) == 2


class MeaningContract(EmbedderContract):
    """For embedders that must know more than words: the right passage shares no content word with the question."""

    PAIRS = (
        ("how do I sign in to my account", "Enter your username and password on the login page."),
        ("the app is slow", "Reducing latency: profile the hot path and cache repeated reads."),
        ("undo the last release", "To roll back, redeploy the previous version of the image."),
        ("delete a file from disk", "os.remove(path) unlinks the directory entry."),
        ("money back for a purchase", "Refunds are issued to the original card within five days."),
    )

    def test_a_paraphrase_is_found_first(self, embedder: Embedder) -> None:
        questions = embedder.embed([question for question, _ in self.PAIRS], role="query")
        answers = embedder.embed([answer for _, answer in self.PAIRS], role="chunk")
        assert (questions @ answers.T).argmax(axis=1).tolist() == list(range(len(self.PAIRS)))


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(axis=1)
