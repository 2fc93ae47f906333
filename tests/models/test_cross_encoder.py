"""The cross-encoder against a plain float64 forward pass of tiny random models, its time budget, its refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from contracts.reranker import RerankerContract, candidate, candidates
from contracts.tiny_encoder import POSITIONS, TinyEncoder, random_encoder, with_head, write_folder
from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.models.cross_encoder import CrossEncoderReranker, open_cross_encoder
from dowse.ports import Reranker

CLS, SEP, FIRST_WORD = 2, 3, 4
QUERY = "w1 w2 w3"
PASSAGES = ["w9 w8", "w4", "", " ".join(f"w{n % 190}" for n in range(200)), "w1 w2 w3", "w150 w151 w152 w153"]


def ids_of(text: str) -> list[int]:
    return [FIRST_WORD + int(word[1:]) for word in text.split()]


def pair_ids(query: str, passage: str, longest: int) -> tuple[list[int], list[int]]:
    """[CLS] question [SEP] passage [SEP]; only the passage is cut."""
    first = [CLS, *ids_of(query), SEP]
    second = ids_of(passage)[: longest - len(first) - 1]
    return [*first, *second, SEP], [0] * len(first) + [1] * (len(second) + 1)


def expected(encoder: TinyEncoder, query: str, passage: str, longest: int) -> float:
    ids, types = pair_ids(query, passage, longest)
    # The tiny tokenizer marks the second text; RoBERTa knows one kind of token only.
    logits = encoder.logits(ids, [0] * len(ids) if encoder.roberta else types)
    return 1 / (1 + math.exp(-(logits[0] if len(logits) == 1 else logits[1] - logits[0])))


def made(folder: Path, seed: int, *, roberta: bool = False, labels: int = 1) -> tuple[Path, TinyEncoder]:
    encoder = with_head(random_encoder(seed, roberta=roberta), seed, labels)
    return write_folder(folder, encoder, prefix="roberta." if roberta else "bert."), encoder


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("roberta", [False, True])
def test_fp32_equals_the_definition(tmp_path: Path, roberta: bool, labels: int) -> None:
    folder, encoder = made(tmp_path, 1, roberta=roberta, labels=labels)
    longest = POSITIONS - (2 if roberta else 0)
    found = CrossEncoderReranker(folder, exact=True).score(QUERY, [candidate(text) for text in PASSAGES])
    assert found == pytest.approx([expected(encoder, QUERY, text, longest) for text in PASSAGES], abs=1e-4)


@pytest.mark.parametrize("roberta", [False, True])
def test_int8_is_close_to_the_definition(tmp_path: Path, roberta: bool) -> None:
    folder, encoder = made(tmp_path, 2, roberta=roberta)
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 190, size)) for size in rng.integers(1, 60, 40)]
    found = np.array(CrossEncoderReranker(folder).score(QUERY, [candidate(text) for text in texts]))
    exact = np.array([expected(encoder, QUERY, text, POSITIONS - 2 * roberta) for text in texts])
    assert np.corrcoef(found, exact)[0, 1] > 0.97  # random weights are the hardest to round: .982 and .986 here


def test_only_the_passage_is_cut(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, 4)
    reranker = CrossEncoderReranker(folder, exact=True, max_tokens=12)
    long, longer = "w5 " * 50, "w5 " * 90
    assert reranker.score(QUERY, [candidate(long)]) == reranker.score(QUERY, [candidate(longer)])
    kept = 12 - (3 + 3)  # [CLS], three words of the question, two [SEP]
    assert reranker.score(QUERY, [candidate("w5 " * kept)]) == reranker.score(QUERY, [candidate(long)])
    assert reranker.score(QUERY, [candidate("w5 " * (kept - 1))]) != reranker.score(QUERY, [candidate(long)])


def test_a_question_that_fills_the_window_is_cut_to_half_of_it(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, 4)
    reranker = CrossEncoderReranker(folder, exact=True, max_tokens=20)
    cut = reranker.score(" ".join(f"w{n}" for n in range(100)), [candidate("w5 w6")])
    assert cut == reranker.score(" ".join(f"w{n}" for n in range(20 // 2)), [candidate("w5 w6")])


def test_what_is_embedded_is_judged_so_the_prefix_counts(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, 5)
    reranker = CrossEncoderReranker(folder, exact=True)
    prefixed = reranker.score(QUERY, [candidate("w7", context_prefix="w8 w9")])
    assert prefixed == reranker.score(QUERY, [candidate("w8 w9 w7")])
    assert prefixed != reranker.score(QUERY, [candidate("w7")])


def test_two_threads_give_the_scores_of_one(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, 6)
    one, two = (CrossEncoderReranker(folder, exact=True, threads=threads) for threads in (1, 2))
    candidates = [candidate(text) for text in PASSAGES]
    assert two.score(QUERY, candidates) == one.score(QUERY, candidates)


@pytest.mark.parametrize(("timeout_s", "judged"), [(3.0, 2), (1.0, 0), (0.0, 0), (100.0, 5), (None, 5)])
def test_time_ends_the_judging_and_the_first_candidates_have_theirs(
    tmp_path: Path, timeout_s: float | None, judged: int
) -> None:
    folder, _ = made(tmp_path, 7)
    looks = iter(range(100))  # a second passes at each look: at 0 s it starts, and the first pair begins at 1 s
    reranker = CrossEncoderReranker(folder, clock=lambda: float(next(looks)))
    scores = reranker.score(QUERY, candidates(), timeout_s=timeout_s)
    assert [score is not None for score in scores] == [at < judged for at in range(5)]


def test_rerank_is_sorted_and_trimmed(tmp_path: Path) -> None:
    """The order changes, a score is attached, top_k=2 gives 2, nothing gives nothing."""
    folder, _ = made(tmp_path, 8)
    reranker = CrossEncoderReranker(folder)
    ranked = reranker.rerank(QUERY, candidates())
    assert [each.value for each in ranked] == sorted((each.value for each in ranked), reverse=True)
    assert [each.chunk for each in ranked] != [each.chunk for each in candidates()]
    assert reranker.rerank(QUERY, candidates(), top_k=2) == ranked[:2]
    assert reranker.rerank(QUERY, []) == []


def test_the_name_tells_models_apart(tmp_path: Path) -> None:
    one, _ = made(tmp_path / "a", 9)
    other, _ = made(tmp_path / "b", 9, labels=2)
    assert CrossEncoderReranker(one, "m").model != CrossEncoderReranker(other, "m").model


def test_an_embedding_model_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, random_encoder(10))
    with pytest.raises(ModelUnavailableError, match=r"no tensor 'pooler\.dense\.weight'"):
        CrossEncoderReranker(folder)


def test_a_classifier_with_many_outputs_is_refused(tmp_path: Path) -> None:
    folder, _ = made(tmp_path, 11, labels=5)
    with pytest.raises(BadRequestError, match="has 5 outputs; a reranker has 1 or 2"):
        CrossEncoderReranker(folder)


def test_a_spec_opens_a_folder_or_says_what_is_wrong(tmp_path: Path) -> None:
    folder, _ = made(tmp_path / "tiny", 12)
    opened = open_cross_encoder(str(folder), models_folder=tmp_path)
    assert opened is not None
    assert opened.model.startswith("tiny+")
    assert open_cross_encoder("none", models_folder=tmp_path) is None
    with pytest.raises(NotFoundError, match="no model folder"):
        open_cross_encoder("./missing", models_folder=tmp_path)
    with pytest.raises(BadRequestError, match="neither a folder nor a hub id"):
        open_cross_encoder("what is this", models_folder=tmp_path)
    with pytest.raises(ModelUnavailableError, match="dowse models pull org/name"):
        open_cross_encoder("org/name", models_folder=tmp_path, allow_fetch=False)


def test_a_pulled_hub_model_is_opened_from_its_folder(tmp_path: Path) -> None:
    made(tmp_path / "org--name", 13)
    opened = open_cross_encoder("org/name", models_folder=tmp_path, allow_fetch=False)
    assert opened is not None
    assert opened.model.startswith("org/name+")


class TestBert(RerankerContract):
    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Reranker:
        return CrossEncoderReranker(made(tmp_path, 14)[0])


class TestRoberta(RerankerContract):
    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Reranker:
        return CrossEncoderReranker(made(tmp_path, 15, roberta=True)[0], threads=2)
