"""The embedded store driven against the reference store: whatever is done to both, both answer alike."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contracts.store_legs import KEPT
from dowse.filters import Clause, Eq, Filter, Gt, In, Lt, Ne, Not, Or, Prefix, by_meta, by_path, created_after
from dowse.identity import document_id
from dowse.ports import Found, StoreReader
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore
from dowse.store.segments import inverted
from dowse.store.verify import verify
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Document, Edge, Leg
from factories import PLAIN, ids, of_chunks, vector, vectors
from values import replace

DIMENSION = 16
MORE_THAN_ALL = 100  # chunks; above what eight documents hold, so that equal scores are never cut apart
WORDS = ("alpha", "beta", "queue", "the", "who", "down", "downs", "parseHttpResponse", "user_id", "naïve", "v2")
WORD_LEGS: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
START = datetime(2026, 1, 1, tzinfo=UTC)

paths = st.integers(0, 7).map(lambda number: f"{number}.py")
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
chunks = st.builds(
    lambda text, language, folder, team, day, level: replace(
        PLAIN,
        text=text,
        language=language,
        file_path=None if folder is None else f"{folder}/file.py",
        meta=() if team is None else (("team", team),),
        timestamp=None if day is None else START + timedelta(days=day),
        level=level,
    ),
    text=texts,
    language=st.sampled_from([None, "python", "go", "a'\"*%"]),
    folder=st.sampled_from([None, "src", "src/deep", "docs"]),
    team=st.sampled_from([None, "core", "9", "10", ""]),
    day=st.sampled_from([None, 0, 1, 2]),
    level=st.sampled_from(["chunk", "chunk", "chunk", "section"]),
)
comparisons: st.SearchStrategy[Clause] = st.sampled_from(
    [
        Eq("language", "python"), Ne("language", "python"), In("language", ("go", "a'\"*%")), Gt("language", "go"),
        Lt("language", "python"), Prefix("file_path", "src/"), by_path("*.py"), by_path("src/*"), by_path("**/deep/**"),
        by_meta("team", "core"), by_meta("team", ""), Ne("meta.team", "core"), Gt("meta.team", 9),
        Lt("meta.team", "core"),
        created_after(START), Lt("timestamp", START.timestamp() + 90_000), Ne("timestamp", START.timestamp()),
        Eq("document_id", document_id("docs", "3.py")), Ne("document_id", document_id("docs", "3.py")),
    ]
)  # fmt: skip
clauses = st.recursive(
    comparisons,
    lambda inner: (
        st.lists(st.lists(inner, max_size=2).map(tuple), max_size=3).map(lambda each: Or(tuple(each)))
        | st.lists(inner, max_size=2).map(lambda each: Not(tuple(each)))
    ),
    max_leaves=4,
)
filters = st.lists(clauses, max_size=2).map(tuple)
queries = st.lists(st.sampled_from([*WORDS, "http", "id", "unheard"]), min_size=1, max_size=4).map(" ".join)


def _document(path: str, own: Sequence[Chunk], weight: float) -> Document:
    made = of_chunks(path, own)
    edges = tuple(
        Edge(a.id, b.id, "sequence", weight) for a, b in zip(made.chunks, made.chunks[1:], strict=False) if a.id != b.id
    )
    return replace(made, edges=edges)


documents = st.builds(_document, paths, st.lists(chunks, max_size=4), st.sampled_from([0.5, 1.0]))


def agree(left: Found, right: Found) -> None:
    """The same chunks with the same scores, each list falling."""
    assert len(set(left.ids.tolist())) == len(left.ids), "a chunk was found twice"
    order_left, order_right = np.argsort(left.ids), np.argsort(right.ids)
    np.testing.assert_array_equal(left.ids[order_left], right.ids[order_right])
    np.testing.assert_allclose(left.scores[order_left], right.scores[order_right], rtol=1e-5, atol=KEPT)
    assert (np.diff(left.scores) <= 0).all()


class Twins(RuleBasedStateMachine):
    """`memory` is right by construction; `store` writes and reads, `onlooker` only reads."""

    @initialize(tail=st.sampled_from([0, 3, 512]))
    def begin(self, tail: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(inverted, "_TAIL_ROWS", tail)
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="dowse-twins-", dir=place))
        self.memory = MemoryStore()
        self.tokenizer = Tokenizer()
        self._open()
        self.onlooker = EmbeddedStore(self.folder / "index", read_only=True)
        for writer in (self.writer, self.memory):
            writer.use_model("test-model", DIMENSION)

    def _open(self) -> None:
        self.store = EmbeddedStore(self.folder / "index")
        self.writer = self.store.writer()

    def _close(self) -> None:
        self.writer.close()
        self.store.close()
        self.memory.publish()

    def teardown(self) -> None:
        self.patch.undo()
        if not hasattr(self, "writer"):
            return
        self._close()
        self.onlooker.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what is done to both -----------------------------------------------------------------------

    @rule(given=st.lists(documents, min_size=1, max_size=4))
    def put(self, given: list[Document]) -> None:
        for writer in (self.writer, self.memory):
            writer.put(given)

    @rule(given=st.lists(paths, min_size=1, max_size=3))
    def remove(self, given: list[str]) -> None:
        gone = [document_id("docs", path) for path in given]
        assert self.writer.remove(gone) == self.memory.remove(gone)

    @rule()
    def publish(self) -> None:
        self.writer.publish()
        self.memory.publish()

    @rule(limit=st.integers(1, 9))
    def embed(self, limit: int) -> None:
        pending = [each.content_hash for each in self.writer.pending(limit)]
        assert len(pending) == len(self.memory.pending(limit)) == len(set(pending))
        for writer in (self.writer, self.memory):
            writer.put_vectors(pending, vectors(pending, DIMENSION))

    @rule(given=st.lists(documents, min_size=1, max_size=2))
    def embed_late(self, given: list[Document]) -> None:
        """Vectors arrive after documents and a compaction have come between."""
        pending = [each.content_hash for each in self.writer.pending(9)]
        self.put(given)
        self.compact()
        for writer in (self.writer, self.memory):
            writer.put_vectors(pending, vectors(pending, DIMENSION))

    @rule()
    def compact(self) -> None:
        self.writer.compact()
        self.memory.compact()

    @rule()
    def reopen(self) -> None:
        self._close()
        self._open()
        self.writer.use_model("test-model", DIMENSION)

    @rule(which=st.integers(0, 1000), deleted=st.booleans())
    def damage(self, which: int, deleted: bool) -> None:
        """A derived file is lost or cut short between two runs."""
        self._close()
        files = [path for path in sorted((self.folder / "index" / "derived").rglob("*")) if path.is_file()]
        victim = files[which % len(files)]
        if deleted:
            victim.unlink()
        else:
            os.truncate(victim, victim.stat().st_size // 2)
        self._open()
        self.writer.use_model("test-model", DIMENSION)

    # --- what both must answer ------------------------------------------------------------------------

    @rule(query=queries, where=filters)
    def ask(self, query: str, where: Filter) -> None:
        for reader in (self.store.reader(), self.onlooker.reader()):
            self._ask(reader, query, where)

    def _ask(self, reader: StoreReader, query: str, where: Filter) -> None:
        memory = self.memory.reader()
        terms, near = self.tokenizer.query(query), vector(f"{hash_of(query):012x}", DIMENSION)
        for leg in WORD_LEGS:
            agree(*(each.search_words(leg, terms[leg], MORE_THAN_ALL, where) for each in (reader, memory)))
        agree(*(each.search_vectors(near, MORE_THAN_ALL, where) for each in (reader, memory)))
        few = [each.search_words("bm25_nlp", terms["bm25_nlp"], 3, where).scores for each in (reader, memory)]
        np.testing.assert_allclose(few[0], few[1], rtol=1e-5)
        asked = ids(*memory.searchable, "0" * 16)
        np.testing.assert_array_equal(reader.passing(asked, where), memory.passing(asked, where))
        scores = [each.score_words(terms, asked) for each in (reader, memory)]
        for leg in WORD_LEGS:
            np.testing.assert_allclose(scores[0][leg], scores[1][leg], rtol=1e-5)
        cosines = [each.score_vectors(near, asked) for each in (reader, memory)]
        np.testing.assert_allclose(cosines[0], cosines[1], atol=KEPT)

    @rule()
    def look_up(self) -> None:
        """Rows of the truth are compared when nothing waits to be published."""
        self.publish()
        reader, memory = self.store.reader(), self.memory.reader()
        everything = [*memory.chunks, "0" * 16]
        assert reader.get(everything) == memory.get(everything)
        for incoming in (False, True):
            assert reader.neighbours(everything, incoming=incoming) == memory.neighbours(everything, incoming=incoming)
        assert sorted(each.id for each in self.store.documents()) == sorted(each.id for each in self.memory.documents())
        for each in self.memory.documents():
            assert tuple(reader.document_chunks(each.id)) == tuple(memory.document_chunks(each.id))

    @rule()
    def examine(self) -> None:
        self.publish()
        assert [check for check in verify(self.store, deep=True) if check.state != "ok"] == []

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "writer"):
            return
        assert self.store.reader().stats == self.memory.reader().stats
        assert self.onlooker.reader().stats == self.memory.reader().stats
        assert self.writer.pending_count() == self.memory.pending_count()


def hash_of(query: str) -> int:
    """A number that is the same in every run, unlike hash()."""
    return int.from_bytes(query.encode()[:6].ljust(6), "big")


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=400 if os.environ.get("DOWSE_THOROUGH") else 30,
    stateful_step_count=60 if os.environ.get("DOWSE_THOROUGH") else 30,
)
