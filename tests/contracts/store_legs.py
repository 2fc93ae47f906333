"""How every store must score: a class to inherit, with BM25 and cosines written out as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import pytest

from contracts.store import DIMENSION, UNKNOWN, StoreContract, embed_all, names, search
from dowse.errors import BadRequestError, ModelMismatchError
from dowse.filters import Eq, Filter, Ne
from dowse.identity import number_id, text_hash
from dowse.ports import Bm25, Matrix, Store, StoreWriter
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Document, Leg
from factories import PLAIN, document, ids, vector, vectors
from values import replace

WORD_LEGS: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
QUERY = vector("aa" * 16, DIMENSION)
KEPT = 5e-5  # what 16 bits a value may cost a cosine in so few dimensions


def idf(chunks: int, containing: int) -> float:
    return log(1 + (chunks - containing + 0.5) / (containing + 0.5))


def saturation(times: int, length: int, mean_length: float) -> float:
    return times / (times + 1.2 * (1 - 0.75 + 0.75 * length / mean_length))


def small_corpus() -> list[Document]:
    """Lengths 3, 2 and 1, mean 2; `retry` in one chunk, `payment` and `queue` in two."""
    return [document("a", "retry retry payment"), document("b", "payment queue"), document("c", "queue")]


class StoreLegsContract(StoreContract):
    """Inherit, and give a fixture `store` with an empty store."""

    # --- words --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("leg", WORD_LEGS)
    def test_bm25_is_the_formula(self, store: Store, writer: StoreWriter, leg: Leg) -> None:
        corpus = small_corpus()
        writer.put(corpus)
        writer.publish()
        terms = Tokenizer().query("retry payment")[leg]
        found = store.reader().search_words(leg, terms, 10, ())
        both = idf(3, 1) * saturation(2, 3, 2.0) + idf(3, 2) * saturation(1, 3, 2.0)
        one = idf(3, 2) * saturation(1, 2, 2.0)
        assert names(store.reader(), found.ids) == ["retry", "payment"]
        np.testing.assert_allclose(found.scores, [both, one], rtol=1e-6)
        exact = store.reader().score_words({leg: terms}, ids(*(each.chunks[0].id for each in corpus)))
        np.testing.assert_allclose(exact[leg], [both, one, 0.0], rtol=1e-6)

    @pytest.mark.parametrize("leg", WORD_LEGS)
    def test_the_dead_do_not_count(self, store: Store, writer: StoreWriter, leg: Leg) -> None:
        """N, the number of chunks with a term and the mean length are those of the living."""
        writer.put([*small_corpus(), document("d", "retry " * 50), document("e", "payment " * 9)])
        writer.publish()
        writer.remove([document("d").id])
        writer.put([document("e")])
        writer.publish()
        found = store.reader().search_words(leg, Tokenizer().query("retry")[leg], 10, ())
        np.testing.assert_allclose(found.scores, [idf(3, 1) * saturation(2, 3, 2.0)], rtol=1e-6)

    def test_a_term_said_twice_counts_twice(self, store: Store, writer: StoreWriter) -> None:
        writer.put(small_corpus())
        writer.publish()
        once = store.reader().search_words("bm25_code", ["payment"], 10, ())
        twice = store.reader().search_words("bm25_code", ["payment", "payment"], 10, ())
        np.testing.assert_allclose(twice.scores, 2 * once.scores, rtol=1e-6)

    def test_a_term_said_often_also_chooses_who_is_found(self, store: Store, writer: StoreWriter) -> None:
        """Of two equally common terms, the one said twenty times must not drown in chunks full of the other."""
        writer.put([document("full", *(f"beta beta beta n{number}" for number in range(60)))])
        writer.put([document("asked", *(f"alpha gamma delta m{number}" for number in range(60)))])
        writer.publish()
        reader = store.reader()
        found = reader.search_words("bm25_code", [*["alpha"] * 20, "beta"], 2, ())
        assert names(reader, found.ids) == ["alpha", "alpha"]

    def test_a_word_in_every_chunk_still_scores(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "alpha"), document("b", "alpha")])
        writer.publish()
        found = store.reader().search_words("bm25_code", ["alpha"], 10, ())
        np.testing.assert_allclose(found.scores, [idf(2, 2) * saturation(1, 1, 1.0)] * 2, rtol=1e-6)
        assert found.ids.tolist() == sorted(found.ids.tolist())  # equal scores: by id

    def test_prefix_and_path_are_searchable_words(self, store: Store, writer: StoreWriter) -> None:
        like = replace(PLAIN, context_prefix="class LedgerBook", file_path="services/billing/post_entry.go")
        writer.put([document("a", "body", like=like)])
        writer.publish()
        for query in ("ledger", "LedgerBook", "billing", "post_entry", "entry", "body"):
            assert search(store, query, "bm25_code") == ["body"], query

    def test_constants_of_bm25_can_be_others_at_the_same_moment(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "alpha alpha"), document("b", "alpha beta gamma delta")])
        writer.publish()
        reader = store.reader()
        plain = reader.session(Bm25(k1=2.0, b=0.0))
        found = plain.search_words("bm25_code", ["alpha"], 10, ())
        assert found.scores.tolist() == pytest.approx([idf(2, 2) * count / (count + 2.0) for count in (2, 1)])
        scores = plain.score_words({"bm25_code": ["alpha"]}, found.ids)["bm25_code"]
        assert scores.tolist() == pytest.approx(found.scores.tolist())
        assert reader.search_words("bm25_code", ["alpha"], 10, ()).scores.tolist() != found.scores.tolist()
        assert reader.session(Bm25()).search_words("bm25_code", ["alpha"], 10, ()).scores.tolist() == (
            reader.search_words("bm25_code", ["alpha"], 10, ()).scores.tolist()
        )

    def test_stop_words_alone_find_chunks_that_hold_them(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "owner: who is it"), document("b", "nobody knows")])
        writer.publish()
        assert search(store, "who is") == ["owner:"]
        assert search(store, "Who?") == ["owner:"]
        assert search(store, "who", "bm25_code") == []

    def test_stop_words_do_not_lengthen_a_chunk(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "the retry of the retry and the payment"), *small_corpus()[1:]])
        writer.publish()
        found = store.reader().search_words("bm25_nlp", Tokenizer().query("retry")["bm25_nlp"], 10, ())
        np.testing.assert_allclose(found.scores, [idf(3, 1) * saturation(2, 3, 2.0)], rtol=1e-6)

    def test_k_cuts_and_zero_is_nothing(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document(str(n), "alpha " * (n + 1)) for n in range(5)])
        writer.publish()
        reader = store.reader()
        best = reader.search_words("bm25_code", ["alpha"], 5, ())
        assert reader.search_words("bm25_code", ["alpha"], 2, ()).ids.tolist() == best.ids.tolist()[:2]
        assert len(reader.search_words("bm25_code", ["alpha"], 0, ()).ids) == 0
        assert len(reader.search_words("bm25_code", [], 5, ()).ids) == 0
        assert len(reader.search_words("bm25_code", ["unheard"], 5, ()).ids) == 0
        assert (np.diff(best.scores) <= 0).all()

    def test_unknown_chunks_score_nothing(self, store: Store, writer: StoreWriter) -> None:
        given = document("a", "alpha")
        writer.put([given])
        writer.publish()
        embed_all(writer)
        reader, asked = store.reader(), ids(UNKNOWN, given.chunks[0].id, "f" * 16)
        scores = reader.score_words({"bm25_code": ["alpha"], "bm25_nlp": ["unheard"]}, asked)
        assert (scores["bm25_code"] > 0).tolist() == [False, True, False]
        assert scores["bm25_nlp"].tolist() == [0.0, 0.0, 0.0]
        assert np.isnan(reader.score_vectors(QUERY, asked)).tolist() == [True, False, True]
        assert reader.passing(asked, ()).tolist() == [False, True, False]
        rows, exist = reader.vectors(asked)
        assert (exist.tolist(), rows.shape) == ([False, True, False], (3, DIMENSION))
        assert not rows[[0, 2]].any()
        assert len(reader.score_vectors(QUERY, ids())) == 0

    @pytest.mark.parametrize("where", [(), (Ne("language", "none"),)], ids=["all", "few"])
    def test_a_session_scores_after_its_searches_as_the_reader_does(
        self, store: Store, writer: StoreWriter, where: Filter
    ) -> None:
        corpus = [document(str(n), f"alpha text{n} {'beta ' * (n % 3)}") for n in range(6)]
        writer.put(corpus)
        writer.publish()
        embed_all(writer)
        writer.put([document("9", "alpha without a vector")])
        writer.publish()
        reader = store.reader()
        terms: dict[Leg, list[str]] = {"bm25_code": ["alpha", "beta"], "bm25_nlp": ["alpha"]}
        session = reader.session()
        words = session.search_words("bm25_code", terms["bm25_code"], 9, where)
        for found in (words, session.search_vectors(QUERY, 4, where), words):
            asked = found.ids
            for leg, scores in session.score_words(terms, asked).items():
                np.testing.assert_allclose(scores, reader.score_words({leg: terms[leg]}, asked)[leg])
            np.testing.assert_array_equal(session.score_vectors(QUERY, asked), reader.score_vectors(QUERY, asked))
            for own, plain in zip(session.vectors(asked), reader.vectors(asked), strict=True):
                np.testing.assert_array_equal(own, plain)
            np.testing.assert_array_equal(session.passing(asked, where), reader.passing(asked, where))
            names_of = [number_id(each) for each in asked.tolist()]
            assert session.get(names_of) == reader.get(names_of)
            assert list(session.get(names_of)) == names_of

    def test_other_constants_do_not_score_with_what_was_remembered(self, store: Store, writer: StoreWriter) -> None:
        writer.put(small_corpus())
        writer.publish()
        reader, where = store.reader(), (Ne("language", "none"),)
        plain = reader.search_words("bm25_code", ["retry"], 5, where)
        flat = reader.session(Bm25(k1=0.0))
        scores = flat.score_words({"bm25_code": ["retry"]}, plain.ids)["bm25_code"]
        assert scores.tolist() == pytest.approx([idf(3, 1)])

    # --- vectors ------------------------------------------------------------------------------------

    def test_cosines_are_dot_products_best_first(self, store: Store, writer: StoreWriter) -> None:
        corpus = [document(str(n), f"text{n}") for n in range(6)]
        writer.put(corpus)
        writer.publish()
        assert embed_all(writer) == 6
        chunks = [each.chunks[0] for each in corpus]
        cosines = {each.text: float(vector(each.content_hash, DIMENSION) @ QUERY) for each in chunks}
        reader = store.reader()
        found = reader.search_vectors(QUERY, 4, ())
        wanted = sorted(cosines, key=lambda text: -cosines[text])[:4]
        assert names(reader, found.ids) == wanted
        np.testing.assert_allclose(found.scores, [cosines[text] for text in wanted], atol=KEPT)
        asked = ids(*(each.id for each in chunks))
        np.testing.assert_allclose(reader.score_vectors(QUERY, asked), list(cosines.values()), atol=KEPT)
        np.testing.assert_allclose(
            reader.vectors(asked)[0], vectors([each.content_hash for each in chunks], DIMENSION), atol=KEPT
        )

    def test_a_chunk_without_a_vector_waits(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "alpha"), document("b", "beta")])
        writer.publish()
        writer.use_model("test-model", DIMENSION)
        assert [each.text for each in writer.pending(1)] == ["alpha"]
        assert (writer.pending_count(), [each.text for each in writer.pending(9)]) == (2, ["alpha", "beta"])
        writer.put_vectors([text_hash("alpha")], vectors([text_hash("alpha")], DIMENSION))
        assert (writer.pending_count(), [each.text for each in writer.pending(9)]) == (1, ["beta"])
        assert names(store.reader(), store.reader().search_vectors(QUERY, 9, ()).ids) == ["alpha"]
        stats = store.reader().stats
        assert (stats.chunks, stats.vectors, stats.model, stats.dimension) == (2, 1, "test-model", DIMENSION)

    def test_equal_texts_are_pending_once_and_share_a_vector(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "same", "same"), document("b", "same")])
        writer.publish()
        assert (writer.pending_count(), embed_all(writer), writer.pending_count()) == (3, 1, 0)
        assert len(store.reader().search_vectors(QUERY, 9, ()).ids) == 3

    def test_what_is_embedded_is_prefix_and_text_without_the_path(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "text", like=replace(PLAIN, context_prefix="def f()", file_path="x/y.py"))])
        writer.publish()
        writer.use_model("test-model", DIMENSION)
        assert [each.text for each in writer.pending(9)] == ["def f()\ntext"]

    def test_a_renamed_or_reverted_document_embeds_nothing(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("old.py", "alpha", "beta")])
        writer.publish()
        assert embed_all(writer) == 2
        writer.remove([document("old.py").id])
        writer.put([document("new.py", "alpha", "beta")])
        writer.publish()
        assert (embed_all(writer), store.reader().stats.vectors) == (0, 2)
        writer.put([document("new.py", "alpha", "changed")])
        writer.publish()
        assert (embed_all(writer), store.reader().stats.vectors) == (1, 2)
        writer.put([document("new.py", "alpha", "beta")])
        writer.publish()
        assert (embed_all(writer), store.reader().stats.vectors) == (0, 2)
        assert sorted(names(store.reader(), store.reader().search_vectors(QUERY, 9, ()).ids)) == ["alpha", "beta"]

    def test_vectors_reach_their_chunks_whatever_came_between(self, store: Store, writer: StoreWriter) -> None:
        """Between asking and answering, a document goes, another comes and all is compacted."""
        writer.put([document("gone", "gone"), document("a", "alpha"), document("b", "beta")])
        writer.publish()
        writer.use_model("test-model", DIMENSION)
        asked = [each.content_hash for each in writer.pending(9)]
        writer.remove([document("gone").id])
        writer.put([document("late", "alpha")])
        writer.publish()
        writer.compact()
        writer.put_vectors(asked, vectors(asked, DIMENSION))
        reader = store.reader()
        wanted = document("a", "alpha").chunks + document("b", "beta").chunks + document("late", "alpha").chunks
        rows, exist = reader.vectors(ids(*(each.id for each in wanted)))
        assert exist.all()
        np.testing.assert_allclose(rows, vectors([each.content_hash for each in wanted], DIMENSION), atol=KEPT)
        assert (writer.pending_count(), reader.stats.vectors) == (0, 3)

    def test_vectors_publish_no_document(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "alpha")])
        writer.publish()
        writer.put([document("a", "unpublished")])
        assert embed_all(writer) == 1
        assert (search(store, "alpha"), search(store, "unpublished")) == (["alpha"], [])
        assert store.reader().stats.vectors == 1

    @pytest.mark.parametrize(
        "broken",
        [
            np.ones((1, DIMENSION + 1), np.float32) / np.sqrt(np.float32(DIMENSION + 1)),
            np.ones((2, DIMENSION), np.float32) / np.sqrt(np.float32(DIMENSION)),
            np.ones(DIMENSION, np.float32) / np.sqrt(np.float32(DIMENSION)),
            np.full((1, DIMENSION), np.nan, np.float32),
            np.full((1, DIMENSION), np.inf, np.float32),
            np.zeros((1, DIMENSION), np.float32),
            np.ones((1, DIMENSION), np.float32),
        ],
        ids=["dimension", "count", "flat", "nan", "infinite", "zero", "not a unit"],
    )
    def test_a_broken_vector_is_refused_and_leaves_no_trace(
        self, store: Store, writer: StoreWriter, broken: Matrix
    ) -> None:
        writer.put([document("a", "alpha")])
        writer.publish()
        writer.use_model("test-model", DIMENSION)
        asked = [each.content_hash for each in writer.pending(9)]
        with pytest.raises(BadRequestError, match=r"vector|dimension"):
            writer.put_vectors(asked, broken)
        assert (writer.pending_count(), store.reader().stats.vectors) == (1, 0)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_question_without_a_direction_is_refused(self, store: Store, writer: StoreWriter, value: float) -> None:
        writer.put([document("a", "alpha")])
        writer.publish()
        embed_all(writer)
        with pytest.raises(BadRequestError, match="NaN or infinity"):
            store.reader().search_vectors(np.full(DIMENSION, value, np.float32), 5, ())

    def test_another_model_is_refused(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a", "alpha")])
        writer.publish()
        embed_all(writer)
        with pytest.raises(ModelMismatchError, match="other-model"):
            writer.use_model("other-model", DIMENSION)
        with pytest.raises(ModelMismatchError, match=str(DIMENSION + 1)):
            writer.use_model("test-model", DIMENSION + 1)
        writer.use_model("test-model", DIMENSION)
        assert store.reader().stats.vectors == 1

    def test_a_filter_comes_before_the_cut(self, store: Store, writer: StoreWriter) -> None:
        """Twenty better chunks fail the filter; the two that pass are found all the same."""
        corpus = [document(f"{n}", f"text{n}", like=_with_language(n)) for n in range(22)]
        writer.put(corpus)
        writer.publish()
        embed_all(writer)
        for k, wanted in ((1, 1), (2, 2), (9, 2)):
            assert len(store.reader().search_vectors(QUERY, k, (Eq("language", "rare"),)).ids) == wanted

    def test_asking_twice_gives_the_same(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document(str(n), "alpha beta", f"alpha w{n}") for n in range(9)])
        writer.publish()
        embed_all(writer)
        first, second = (_all_legs(store) for _ in range(2))
        assert first == second


def _with_language(number: int) -> Chunk:
    return replace(PLAIN, language="rare" if number % 11 == 0 else "common")


def _all_legs(store: Store) -> Sequence[list[int]]:
    reader = store.reader()
    words = [reader.search_words(leg, ["alpha", "beta"], 7, ()).ids.tolist() for leg in WORD_LEGS]
    return [*words, reader.search_vectors(QUERY, 7, ()).ids.tolist()]
