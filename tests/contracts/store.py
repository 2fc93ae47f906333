"""What every store must do: a class to inherit, whose subclass gives the `store` fixture and passes all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from dowse.errors import BadRequestError
from dowse.filters import (
    Clause,
    Eq,
    Filter,
    Glob,
    Gt,
    In,
    Lt,
    Ne,
    Not,
    Or,
    Prefix,
    by_author,
    by_channel,
    by_corpus,
    by_document,
    by_language,
    by_meta,
    by_path,
    by_repo,
    by_section_type,
    by_service,
    by_source,
    created_after,
    created_before,
    exclude_document,
)  # fmt: skip
from dowse.identity import number_id
from dowse.ports import Ids, Store, StoreReader, StoreWriter
from dowse.tokenizer import Tokenizer
from dowse.types import Document, Edge, Leg, Source
from factories import PLAIN, document, ids, of_chunks, vector, vectors
from values import replace

DIMENSION = 8
UNKNOWN = "00000000deadbeef"
JANUARY, FEBRUARY, MARCH = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3))


def names(reader: StoreReader, found: Ids) -> list[str]:
    """The first words of the chunks, in order; a chunk that cannot be fetched is an error."""
    numbers = [number_id(int(each)) for each in found]
    chunks = reader.get(numbers)
    return [chunks[each].text.split()[0] for each in numbers]


def search(store: Store, query: str, leg: Leg = "bm25_nlp", k: int = 10, where: Filter = ()) -> list[str]:
    reader = store.reader()
    return names(reader, reader.search_words(leg, Tokenizer().query(query)[leg], k, where).ids)


def embed_all(writer: StoreWriter) -> int:
    """Give every chunk its vector; the number of texts that had to be embedded."""
    writer.use_model("test-model", DIMENSION)
    pending = [each.content_hash for each in writer.pending(1000)]
    if pending:
        writer.put_vectors(pending, vectors(pending, DIMENSION))
    return len(pending)


def filter_corpus() -> list[Document]:
    """Four documents of one chunk; the first word of a chunk is its name."""
    fields = {
        "retry": replace(
            PLAIN, file_path="src/pay/retry.py", language="python", repo_name="pay", service_name="payments",
            author="O'Brien", timestamp=JANUARY, symbol_kind="function", symbol_name="retry", meta=(("team", "core"),),
        ),
        "book": replace(
            PLAIN, corpus_type="DOC_RUNBOOK", file_path='docs/run "book" [1].md', language="markdown",
            author='x" OR 1=1 --', timestamp=FEBRUARY, section_type="steps", meta=(("team", "a*b?[c]"), ("n", "10")),
        ),
        "talk": replace(PLAIN, corpus_type="CONVO_SLACK", channel="ops%", author="_", meta=(("n", "9"),)),
        "app": replace(
            PLAIN, file_path="src/web/app.ts", language="typescript", repo_name="web", author="é ~", timestamp=MARCH,
            meta=(("team", ""), ("odd key: *'", "naïve")),
        ),
    }  # fmt: skip
    return [document(name, f"{name} alpha", like=like, source=f"of-{name}") for name, like in fields.items()]


ALL = "app book retry talk"
FILTERS: Sequence[tuple[Clause, str]] = (
    (Eq("language", "python"), "retry"),
    (Eq("language", "Python"), ""),
    (Ne("language", "python"), "app book talk"),  # talk has no language
    (In("language", ("python", "markdown", "cobol")), "book retry"),
    (In("language", ()), ""),
    (Gt("language", "markdown"), "retry app"),
    (Lt("language", "python"), "book"),
    (Prefix("file_path", "src/"), "app retry"),
    (Prefix("file_path", "src/%"), ""),
    (Glob("file_path", ("*.py", "docs/*")), "book retry"),
    (Glob("author", ("O'*",)), "retry"),
    (by_path("src/**"), "app retry"),
    (by_path('docs/run "book" [[]1].md'), "book"),
    (by_path('docs/run "book" [1].md'), ""),  # brackets are a wildcard
    (by_author("O'Brien"), "retry"),
    (by_author('x" OR 1=1 --'), "book"),
    (by_author("_"), "talk"),
    (by_author("%", "*", "O'B%", "' OR ''='"), ""),
    (by_author("é ~"), "app"),
    (by_channel("#ops%"), "talk"),
    (by_channel("ops"), ""),
    (by_meta("team", "a*b?[c]"), "book"),
    (by_meta("team", "a*"), ""),
    (by_meta("team", ""), "app"),
    (by_meta("odd key: *'", "naïve"), "app"),
    (by_meta("nobody has this", "x"), ""),
    (Ne("meta.team", "core"), "app book talk"),
    (Or(((Eq("language", "python"),), (by_channel("ops%"),))), "retry talk"),
    (Or(((Prefix("file_path", "src/"), Eq("language", "python")), (by_channel("ops%"),))), "retry talk"),
    (Or(()), ""),
    (Not((Eq("language", "python"),)), "app book talk"),  # talk has no language
    (Not((Prefix("file_path", "src/"), Eq("language", "python"))), "app book talk"),
    (Not(()), ""),
    (Not((created_after(0),)), "talk"),  # without a time
    (Not((Or(((by_corpus("CODE"),), (by_corpus("DOC"),))),)), "talk"),
    (Gt("meta.n", 9), "book"),  # 10 > 9 as numbers, "10" < "9" as text
    (Gt("meta.n", "9"), "book"),
    (Eq("meta.n", 10.0), "book"),
    (by_corpus("CODE"), "app retry"),
    (by_corpus("doc", "CONVO_SLACK"), "book talk"),
    (by_repo("pay", "web"), "app retry"),
    (by_service("payments"), "retry"),
    (by_language("PYTHON"), "retry"),
    (by_section_type("steps"), "book"),
    (Eq("symbol_kind", "function"), "retry"),
    (by_source("of-app", "of-talk"), "app talk"),
    (by_document(document("app", source="of-app").id, "no such"), "app"),
    (exclude_document(document("app", source="of-app").id), "book retry talk"),
    (created_after(JANUARY), "app book"),
    (created_before(MARCH), "book retry"),
    (Eq("timestamp", FEBRUARY.timestamp()), "book"),
    (Ne("timestamp", FEBRUARY.timestamp()), "app retry talk"),
    (In("timestamp", (JANUARY.timestamp(), str(MARCH.timestamp()))), "app retry"),
)


class StoreContract:
    """Inherit, and give a fixture `store` with an empty store."""

    @pytest.fixture
    def writer(self, store: Store) -> Iterator[StoreWriter]:
        writer = store.writer()
        yield writer
        writer.close()

    # --- writing ------------------------------------------------------------------------------------

    def test_an_empty_store_answers_with_nothing(self, store: Store) -> None:
        reader = store.reader()
        stats = reader.stats
        assert (stats.documents, stats.chunks, stats.vectors, stats.model) == (0, 0, 0, None)
        assert search(store, "anything") == []
        assert len(reader.search_vectors(vector("00" * 16, DIMENSION), 5, ()).ids) == 0
        assert not reader.passing(ids(UNKNOWN), ()).any()

    def test_a_document_is_found_after_publish_and_not_before(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a.py", "alpha one", "beta two")])
        assert search(store, "alpha") == []
        writer.publish()
        assert search(store, "alpha") == ["alpha"]
        assert (store.reader().stats.documents, store.reader().stats.chunks) == (1, 2)

    def test_a_reader_keeps_its_moment(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a.py", "alpha one"), document("b.py", "beta two")])
        writer.publish()
        old = store.reader()
        writer.put([document("a.py", "gamma three")])
        writer.remove([document("b.py").id])
        writer.publish()
        assert len(old.search_words("bm25_code", ["alpha"], 5, ()).ids) == 1
        assert len(old.search_words("bm25_code", ["gamma"], 5, ()).ids) == 0
        assert (old.stats.documents, old.stats.chunks) == (2, 2)
        writer.compact()
        assert len(old.search_words("bm25_code", ["alpha"], 5, (Eq("document_source", "docs"),)).ids) == 1
        assert (store.reader().stats.documents, store.reader().stats.chunks) == (1, 1)

    def test_replacing_leaves_nothing_of_the_old(self, store: Store, writer: StoreWriter) -> None:
        old = document("a.py", "alpha one", "shared text")
        writer.put([old])
        writer.publish()
        writer.put([document("a.py", "shared text", "gamma three")])
        writer.publish()
        assert search(store, "alpha one") == []
        assert sorted(search(store, "shared gamma")) == ["gamma", "shared"]
        assert not store.reader().get([old.chunks[0].id])
        assert store.reader().stats.chunks == 2

    def test_the_last_of_two_versions_in_one_put_counts(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a.py", "alpha"), document("a.py", "beta")])
        writer.publish()
        assert (search(store, "alpha"), search(store, "beta")) == ([], ["beta"])

    def test_remove_counts_what_existed(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("a.py", "alpha"), document("b.py", "beta")])
        writer.publish()
        assert writer.remove([document("a.py").id, document("a.py").id, "unknown"]) == 1
        assert writer.remove([]) == 0
        writer.publish()
        assert (search(store, "alpha"), search(store, "beta")) == ([], ["beta"])
        assert store.reader().document(document("a.py").id) is None

    def test_a_document_without_chunks_is_a_document(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document("empty.py")])
        writer.publish()
        assert (store.reader().stats.documents, store.reader().stats.chunks) == (1, 0)
        assert [each.path for each in store.documents()] == ["empty.py"]

    def test_compaction_changes_no_answer(self, store: Store, writer: StoreWriter) -> None:
        writer.put([document(f"{n}.py", f"alpha common w{n}") for n in range(6)])
        embed_all(writer)
        writer.remove([document("3.py").id])
        writer.publish()
        before = store.reader().search_words("bm25_code", ["alpha", "w2"], 9, ())
        writer.compact()
        after = store.reader().search_words("bm25_code", ["alpha", "w2"], 9, ())
        assert before.ids.tolist() == after.ids.tolist()
        np.testing.assert_allclose(before.scores, after.scores)

    def test_closing_publishes(self, store: Store) -> None:
        writer = store.writer()
        writer.put([document("a.py", "alpha")])
        writer.close()
        assert search(store, "alpha") == ["alpha"]

    # --- documents, chunks, edges, sources ------------------------------------------------------------

    def test_a_document_is_remembered_field_by_field(self, store: Store, writer: StoreWriter) -> None:
        given = replace(document("a.py", "alpha", "beta"), size_bytes=7, modified_ns=8, meta=(("team", "x"),))
        writer.put([given])
        writer.publish()
        found = store.reader().document(given.id)
        assert found is not None
        assert (found.id, found.source, found.path, found.title) == (given.id, given.source, given.path, given.title)
        assert (found.content_hash, found.chunk_count, found.size_bytes) == (given.content_hash, 2, 7)
        assert (found.modified_ns, found.meta, found.indexed_at.tzinfo) == (8, (("team", "x"),), UTC)
        assert tuple(store.reader().document_chunks(given.id)) == given.chunks
        assert store.reader().document("unknown") is None
        assert list(store.reader().document_chunks("unknown")) == []

    def test_a_chunk_comes_back_as_it_was(self, store: Store, writer: StoreWriter) -> None:
        like = replace(
            PLAIN, document_title="T", parent_id=UNKNOWN, start_line=3, end_line=9, qualified_name="a.b", page=4,
            signature="def b()", summary="s", section_path="x > y", thread_id="t", calls_out=("f", "g"),
            imports=("os",), connection_count=6, context_prefix="in module a", timestamp=JANUARY,
            meta=(("k", "ü\n\0"),),
        )  # fmt: skip
        given = document("weird\n☃.py", "text with \0 and \U0001f600 and 'quotes\"", like=like)
        writer.put([given])
        writer.publish()
        assert store.reader().get([given.chunks[0].id, UNKNOWN]) == {given.chunks[0].id: given.chunks[0]}

    def test_only_chunks_are_searched(self, store: Store, writer: StoreWriter) -> None:
        levels = [replace(PLAIN, text=f"{level} alpha", level=level) for level in ("document", "section", "chunk")]
        given = of_chunks("a.md", levels)
        writer.put([given])
        writer.publish()
        embed_all(writer)
        reader = store.reader()
        found = ids(*(each.id for each in given.chunks))
        assert (search(store, "alpha"), reader.stats.chunks, reader.stats.vectors) == (["chunk"], 1, 1)
        assert reader.passing(found, ()).tolist() == [False, False, True]
        assert (reader.score_words({"bm25_nlp": ["alpha"]}, found)["bm25_nlp"] > 0).tolist() == [False, False, True]
        assert np.isnan(reader.score_vectors(vector("00" * 16, DIMENSION), found)).tolist() == [True, True, False]
        assert len(reader.get([each.id for each in given.chunks])) == len(reader.document_chunks(given.id)) == 3

    def test_edges_are_found_from_both_ends_heaviest_first(self, store: Store, writer: StoreWriter) -> None:
        a, b, c = (chunk.id for chunk in document("a.py", "one", "two", "three").chunks)
        edges = [
            Edge(a, b, "calls", 0.5),
            Edge(a, c, "calls", 0.9, "why"),
            Edge(b, a, "imports"),
            Edge(c, UNKNOWN, "x"),
        ]
        writer.put([of_chunks("a.py", [replace(PLAIN, text=text) for text in ("one", "two", "three")], edges)])
        writer.publish()
        reader = store.reader()
        assert list(reader.neighbours([a])) == [edges[1], edges[0]]
        assert list(reader.neighbours([a, c], incoming=True)) == [edges[2], edges[1]]
        assert list(reader.neighbours([UNKNOWN])) == []
        writer.remove([document("a.py").id])
        writer.publish()
        assert list(store.reader().neighbours([a, b, c])) == []

    def test_sources_are_kept_replaced_and_forgotten(self, store: Store, writer: StoreWriter) -> None:
        writer.add_source(Source("b", "/b"))
        writer.add_source(Source("a", "/old"))
        writer.add_source(Source("a", "/a"))
        assert list(store.sources()) == [Source("a", "/a"), Source("b", "/b")]
        writer.put([document("x.py", "alpha", source="a"), document("y.py", "beta", source="b")])
        writer.publish()
        assert [each.path for each in store.documents("a")] == ["x.py"]
        assert len(list(store.documents())) == 2
        writer.remove_source("b")
        assert list(store.sources()) == [Source("a", "/a")]

    # --- filters ------------------------------------------------------------------------------------

    def test_every_clause_holds_in_every_leg(self, store: Store, writer: StoreWriter) -> None:
        corpus = filter_corpus()
        writer.put(corpus)
        writer.publish()
        embed_all(writer)
        reader = store.reader()
        everything = [each.chunks[0].id for each in corpus]
        wrong: list[tuple[object, ...]] = []
        for clause, text in FILTERS:
            wanted = sorted(text.split())
            legs = {
                "words": search(store, "alpha", where=(clause,)),
                "code": search(store, "alpha", "bm25_code", where=(clause,)),
                "dense": names(reader, reader.search_vectors(vector("aa" * 16, DIMENSION), 9, (clause,)).ids),
                "passing": names(reader, ids(*everything)[reader.passing(ids(*everything), (clause,))]),
            }
            wrong += [(clause, leg, found, wanted) for leg, found in legs.items() if sorted(found) != wanted]
        assert not wrong

    def test_clauses_are_anded(self, store: Store, writer: StoreWriter) -> None:
        writer.put(filter_corpus())
        writer.publish()
        assert search(store, "alpha", where=(by_corpus("CODE"), created_after(JANUARY))) == ["app"]
        assert search(store, "alpha", where=(by_language("python"), by_corpus("DOC"))) == []

    @pytest.mark.parametrize(
        "clause", [Eq("nonsense", "x"), Eq("meta.", "x"), Prefix("timestamp", "2"), Gt("timestamp", "x"), by_path("")]
    )
    def test_a_filter_without_a_meaning_is_refused(self, store: Store, clause: Clause) -> None:
        reader = store.reader()
        with pytest.raises(BadRequestError):
            reader.search_words("bm25_nlp", ["alpha"], 5, (clause,))
        with pytest.raises(BadRequestError):
            reader.search_vectors(vector("00" * 16, DIMENSION), 5, (clause,))
        with pytest.raises(BadRequestError):
            reader.passing(ids(UNKNOWN), (clause,))

    def test_a_new_value_of_a_field_can_be_filtered_by_at_once(self, store: Store, writer: StoreWriter) -> None:
        writer.put(filter_corpus())
        writer.publish()
        assert search(store, "alpha", where=(by_meta("late", "x"),)) == []
        writer.put([document("new.zig", "zig alpha", like=replace(PLAIN, language="zig", meta=(("late", "x"),)))])
        writer.publish()
        assert search(store, "alpha", where=(by_meta("late", "x"),)) == ["zig"]
        assert search(store, "alpha", where=(by_language("zig"),)) == ["zig"]
        assert "zig" not in search(store, "alpha", where=(Ne("meta.late", "x"),))
