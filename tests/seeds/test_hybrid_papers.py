"""Hybrid retrieval of papers: a word index, a hybrid retriever and a query processor over fakes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import MagicMock, create_autospec, patch

import pytest

from dowse import (
    BM25Index,
    Chunk,
    HybridRetriever,
    LLMReranker,
    QueryProcessor,
    QueryType,
    RetrievalPipeline,
    reciprocal_rank_fusion,
)
from dowse.errors import BadRequestError

K = 60
MISSING = 1000


@dataclass
class EnrichedChunk:
    """A chunk as another system has it."""

    chunk_id: str
    text: str
    paper_id: str = "p1"
    section_type: str = "body"


@dataclass
class SearchResult:
    """A result as another system has it."""

    chunk_id: str
    text: str = "text"
    score: float = 0.5
    paper_id: str = "p1"
    section_type: str = "body"


CORPUS = [
    EnrichedChunk("c1", "deep learning for NLP"),
    EnrichedChunk("c2", "quantum computing physics", "p2", "abstract"),
    EnrichedChunk("c3", "BERT-base has 94.2% F1; deep results", "p2"),
    EnrichedChunk("c4", "we wrote it in C++ and not in C#", "p3"),
]


@pytest.fixture
def index() -> BM25Index:
    made = BM25Index()
    made.build_index(CORPUS)
    return made


def ids(found: Any) -> list[str]:
    return [each.chunk_id for each in found]


# The word index.


def test_words_are_lowered_split_and_not_stemmed() -> None:
    index = BM25Index(remove_stopwords=False)
    assert index._tokenize("Hello World DEEP") == ["hello", "world", "deep"]
    assert index.tokenize("hello, world! running") == ["hello", "world", "running"]
    assert index.tokenize("BERT-base") == ["bert-base", "bert", "base"]
    assert index.tokenize("94.2% in C++") == ["94.2", "94", "2", "in", "c++"]
    assert index.tokenize("") == []


def test_stop_words_are_dropped_unless_they_are_wanted() -> None:
    assert BM25Index().tokenize("the model is in it") == ["model"]
    assert BM25Index().tokenize("the of and") == []
    assert BM25Index(remove_stopwords=False).tokenize("the of") == ["the", "of"]


def test_an_index_is_built_of_a_copy_and_replaced_by_the_next() -> None:
    index, chunks = BM25Index(), list(CORPUS)
    assert (index.is_built(), index.chunk_count()) == (False, 0)
    index.build_index(chunks)
    chunks.clear()
    assert (index.is_built(), index.chunk_count(), ids(index.search("quantum"))) == (True, 4, ["c2"])
    index.build_index(CORPUS[:1])
    assert (index.chunk_count(), index.search("quantum")) == (1, [])


def test_an_index_that_cannot_answer_says_why() -> None:
    with pytest.raises(ValueError, match="cannot build an index of no chunks"):
        BM25Index().build_index([])
    with pytest.raises(ValueError, match="chunk 0 has no id and text"):
        BM25Index().build_index([object()])
    with pytest.raises(RuntimeError, match="the index is not built; call build_index"):
        BM25Index().search("deep")


def test_the_best_word_hit_has_score_1_and_hits_without_a_term_are_left_out(index: BM25Index) -> None:
    found = index.search("deep learning")
    assert ids(found) == ["c1", "c3"]
    assert found[0].score == 1.0
    assert 0 < found[1].score < 1
    assert found[1].score == (found[1].sparse_score or 0) / (found[0].sparse_score or 0)
    assert index.search("nothing known") == []
    assert index.search("") == []


def test_exact_terms_are_found_by_their_joined_form(index: BM25Index) -> None:
    assert ids(index.search("BERT-base")) == ["c3"]
    assert ids(index.search("94.2%")) == ["c3"]
    assert ids(index.search("C++")) == ["c4"]


def test_word_filters_are_joined_and_keep_the_weight_of_a_term(index: BM25Index) -> None:
    assert ids(index.search("deep", paper_id="p2")) == ["c3"]
    assert ids(index.search("physics deep", section_type="abstract")) == ["c2"]
    assert index.search("deep", paper_id="p2", section_type="abstract") == []
    assert len(index.search("deep learning physics", n_results=2)) == 2
    raw = {each.id: each.sparse_score for each in index.search("deep")}
    assert index.search("deep", paper_id="p2")[0].sparse_score == raw["c3"]


# The hybrid retriever.


@pytest.fixture
def parts() -> dict[str, MagicMock]:
    vectors, embedder = MagicMock(), MagicMock()
    words = create_autospec(BM25Index, instance=True)
    embedder.embed_query.return_value = [0.1] * 8
    words.is_built.return_value = True
    vectors.search.return_value = [SearchResult(each) for each in ("c3", "c1", "c5", "c2")]
    words.search.return_value = [SearchResult(each) for each in ("c1", "c3", "c4", "c5")]
    return {"vector_store": vectors, "embedding_service": embedder, "bm25_index": words}


def test_the_worked_example_has_its_scores(parts: dict[str, MagicMock]) -> None:
    found = HybridRetriever(**parts).retrieve("transformer attention mechanism", top_k=5, alpha=0.7)

    def rrf(dense: int, sparse: int) -> float:
        return 0.7 / (K + dense) + 0.3 / (K + sparse)

    assert {each.chunk_id: each.rrf_score for each in found} == pytest.approx(
        {"c3": rrf(1, 2), "c1": rrf(2, 1), "c5": rrf(3, 4), "c2": rrf(4, MISSING), "c4": rrf(MISSING, 3)}
    )
    assert ids(found) == ["c3", "c1", "c5", "c2", "c4"]


def test_positions_defaults_and_the_number_of_candidates(parts: dict[str, MagicMock]) -> None:
    retriever = HybridRetriever(parts["vector_store"], parts["embedding_service"], parts["bm25_index"], 0.6, 20)
    assert retriever.profile.alpha == 0.6
    assert len(retriever.retrieve("q", top_k=2)) == 2
    assert parts["bm25_index"].search.call_args.kwargs["n_results"] == 20
    assert HybridRetriever(**parts).profile.alpha == 1 - 0.3


@pytest.mark.parametrize(("alpha", "first"), [(1.0, "c3"), (0.0, "c1"), (None, "c3")])
def test_alpha_0_is_words_and_1_is_vectors(parts: dict[str, MagicMock], alpha: float | None, first: str) -> None:
    assert ids(HybridRetriever(**parts).retrieve("q", alpha=alpha))[0] == first


def test_filters_of_one_call_reach_both_sides_and_hold(parts: dict[str, MagicMock]) -> None:
    other = SearchResult("z9", paper_id="p2", section_type="abstract")
    parts["vector_store"].search.return_value.append(other)
    found = HybridRetriever(**parts).retrieve("q", paper_id="p2", section_type="abstract")
    assert ids(found) == ["z9"]
    for part in ("vector_store", "bm25_index"):
        assert parts[part].search.call_args.kwargs["paper_id"] == "p2"
        assert parts[part].search.call_args.kwargs["section_type"] == "abstract"


def test_either_side_may_fail_and_both_failing_is_empty(parts: dict[str, MagicMock]) -> None:
    retriever = HybridRetriever(**parts)
    parts["embedding_service"].embed_query.side_effect = RuntimeError("rate limit")
    assert ids(retriever.retrieve("q"))[0] == "c1"
    parts["bm25_index"].is_built.return_value = False
    assert retriever.retrieve("q") == ()
    result = retriever.query("q")
    assert {each.stage: each.reason for each in result.degraded}["bm25_nlp"].startswith("the word index is not built")
    parts["embedding_service"].embed_query.side_effect = None
    assert ids(retriever.retrieve("q"))[0] == "c3"


def test_a_word_index_is_a_retriever_alone_and_a_leg(index: BM25Index) -> None:
    assert ids(HybridRetriever(bm25_index=index).retrieve("deep learning")) == ["c1", "c3"]
    assert ids(RetrievalPipeline(legs=[index]).retrieve("deep learning")) == ["c1", "c3"]


# The language model that reranks.


class FakeLLM:
    """Language model with one reply, or an error."""

    model = "fake"

    def __init__(self, reply: Any) -> None:
        self.reply, self.prompts = reply, list[str]()

    def complete_json(self, prompt: str, schema: Any, timeout_s: float, *, max_tokens: int) -> Any:
        self.prompts.append(prompt)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


CANDIDATES = [{"chunk_id": "c1", "text": "one", "rrf_score": 0.5}, {"chunk_id": "c2", "text": "two", "rrf_score": 0.4}]


def test_the_score_of_the_model_and_the_fused_score_are_blended() -> None:
    reranker = LLMReranker(FakeLLM({"scores": [10, 1]}), scale=(1, 10), rerank_weight=0.7, rrf_weight=0.3)
    best, other = reranker.rerank("test", CANDIDATES, top_k=5)
    assert best.reranked_score == pytest.approx(0.7 * 1.0 + 0.3 * 0.5)
    assert other.reranked_score == pytest.approx(0.7 * 0.0 + 0.3 * 0.4)
    assert (best.original_score, best["text"], best.chunk_id) == (0.5, "one", "c1")


@pytest.mark.parametrize(
    "reply",
    [RuntimeError("down"), KeyError("x"), "prose", {"scores": [7]}, {"scores": [float("nan")] * 2}, MagicMock(), None],
)
def test_a_model_that_fails_leaves_the_order(reply: Any) -> None:
    assert ids(LLMReranker(FakeLLM(reply)).rerank("test", CANDIDATES, top_k=2)) == ["c1", "c2"]


def test_without_a_model_candidates_or_a_query_the_order_stays() -> None:
    assert ids(LLMReranker(None).rerank("test", CANDIDATES, top_k=1)) == ["c1"]
    assert LLMReranker(FakeLLM([9, 9])).rerank("test", []) == []
    assert ids(LLMReranker(FakeLLM([1, 9])).rerank("", CANDIDATES)) == ["c1", "c2"]


def test_several_questions_are_reranked_in_one_call() -> None:
    llm = FakeLLM({"scores": [1, 9, 8, 2]})
    first, second = LLMReranker(llm).rerank_many([("one?", CANDIDATES), ("two?", CANDIDATES)], top_k=2)
    assert (ids(first), ids(second)) == (["c2", "c1"], ["c1", "c2"])
    assert len(llm.prompts) == 1
    assert [f'id="P{place}"' in llm.prompts[0] for place in range(1, 6)] == [True] * 4 + [False]
    assert llm.prompts[0].index("one?") < llm.prompts[0].index('id="P2"') < llm.prompts[0].index("two?")


def test_the_prompt_has_name_type_and_summary() -> None:
    chunk = Chunk("1", "d", "class EntityStore: ...", "CODE_LOGIC", "s", symbol_name="EntityStore", symbol_kind="class",
                  summary="Keeps entities.")  # fmt: skip
    llm = FakeLLM([5])
    LLMReranker(llm).rerank("entity search", [chunk])
    assert "EntityStore (class): Keeps entities." in llm.prompts[0]


# The query processor.


def retriever_of(found: list[SearchResult]) -> MagicMock:
    retriever = MagicMock(spec=["retrieve"])
    retriever.retrieve.return_value = found
    return retriever


@pytest.mark.parametrize(
    ("text", "alpha"),
    [("What is the F1 score?", 0.5), ("How does attention work?", 0.8), ("Compare BERT and GPT", 0.7)],
)
def test_a_processor_gives_a_retriever_the_weight_of_the_query_type(text: str, alpha: float) -> None:
    retriever = retriever_of([SearchResult("c1"), SearchResult("c2")])
    result = QueryProcessor(retriever).process(text, paper_id="p1")
    assert ids(result.results) == ["c1", "c2"]
    assert retriever.retrieve.call_args.kwargs["alpha"] == alpha
    assert retriever.retrieve.call_args.kwargs["paper_id"] == "p1"


def test_results_of_several_wordings_are_merged_by_the_mean_vote() -> None:
    lists = {"q one": ["c1", "c2"], "other": ["c2", "c3"]}
    retriever = MagicMock(spec=["retrieve"])
    retriever.retrieve.side_effect = lambda query, **named: [SearchResult(each) for each in lists[query]]
    llm = FakeLLM({"type": "factual", "queries": ["other"]})
    result = QueryProcessor(retriever, llm=llm).process("q one")
    assert result.expanded_queries == ("q one", "other")
    scores = {each.chunk_id: each.rrf_score for each in result.results}
    assert scores == pytest.approx(
        {
            "c2": (1 / (K + 2) + 1 / (K + 1)) / 2,
            "c1": (1 / (K + 1) + 1 / (K + MISSING)) / 2,
            "c3": (1 / (K + MISSING) + 1 / (K + 2)) / 2,
        }
    )


@pytest.mark.parametrize("kind", ["factual", "conceptual", "comparison", "metadata"])
def test_the_model_classifies_and_every_method_agrees(index: BM25Index, kind: str) -> None:
    processor = QueryProcessor(HybridRetriever(bm25_index=index), llm=FakeLLM({"type": kind, "variants": ["deep"]}))
    result = processor.process("learning")
    assert processor.classify_query("learning") == processor.classify("learning") == result.query_type == kind
    assert processor.expand_query("learning") == list(result.expanded_queries) == ["learning", "deep"]


@pytest.mark.parametrize("reply", [RuntimeError("down"), {"type": "poetry"}, [], None, MagicMock()])
def test_a_model_that_fails_leaves_the_rules_and_the_query(index: BM25Index, reply: Any) -> None:
    processor = QueryProcessor(HybridRetriever(bm25_index=index), llm=FakeLLM(reply))
    result = processor.process("deep learning")
    assert (processor.classify_query("deep learning"), result.query_type) == (QueryType.FACTUAL,) * 2
    assert processor.expand_query("deep learning") == ["deep learning"] == list(result.expanded_queries)
    assert ids(result.results) == ["c1", "c3"]


def test_a_reranker_of_the_user_is_called_once_with_the_original_query() -> None:
    reranker = MagicMock(spec=["rerank"])
    reranker.rerank.side_effect = lambda query, candidates, top_k: candidates[::-1]
    retriever = retriever_of([SearchResult("c1", score=0.9), SearchResult("c2", score=0.8)])
    QueryProcessor(retriever, reranker).process("What is it?")
    assert reranker.rerank.call_args.args[0] == "What is it?"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_blank_query_is_factual_and_empty(index: BM25Index, text: str) -> None:
    processor = QueryProcessor(HybridRetriever(bm25_index=index))
    assert processor.classify_query(text) == QueryType.FACTUAL == "factual"
    assert processor.process(text).results == ()


def test_methods_of_a_processor_can_be_patched(index: BM25Index) -> None:
    processor = QueryProcessor(HybridRetriever(bm25_index=index))
    with patch.object(processor, "classify_query", return_value=QueryType.FACTUAL):
        assert processor.classify_query("deep") is QueryType.FACTUAL


def test_retrieve_gives_as_many_as_asked_for() -> None:
    index = BM25Index()
    index.build_index([replace(CORPUS[0], chunk_id=f"n{at}", text=f"deep number {at}") for at in range(40)])
    assert len(QueryProcessor(HybridRetriever(bm25_index=index)).retrieve("deep", 20)) == 20
    assert len(HybridRetriever(bm25_index=index).retrieve("deep", 20)) == 20
    with pytest.raises(BadRequestError, match="top_k is '5'; give a whole number"):
        HybridRetriever(bm25_index=index).retrieve("deep", "5")  # type: ignore[arg-type]


def test_lists_without_names_are_refused_with_the_shape_to_give() -> None:
    hits: Any = [{"id": "a", "_distance": 0.1}]
    with pytest.raises(BadRequestError, match="give the lists by name"):
        reciprocal_rank_fusion(hits, [("a", 1.0)], 60)  # type: ignore[arg-type]
    assert reciprocal_rank_fusion({"dense": ["a"], "bm25_code": ["a"], "bm25_nlp": ["a"]}) == [
        ("a", pytest.approx(3 / 61))
    ]
