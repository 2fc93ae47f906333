"""Parents: hits of a real store go in; what stands around them, or in their place, is checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dowse.filters import Filter, by_repo
from dowse.identity import chunk_id
from dowse.ports import STANDARD, Bm25, StoreReader
from dowse.query.stages.parents import AttachParents, ReplaceByParent
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.store.memory import MemoryStore
from dowse.types import Chunk, ChunkId, EdgeContext
from factories import PLAIN, of_chunks
from values import replace

PATH, URI = "guide.md", "docs/guide.md"
DOCUMENT, SECTION, OTHER = "the whole guide", "section one with both parts", "section two"


def made(level: str, text: str, parent: str | None = None, **fields: Any) -> Chunk:
    levels = {DOCUMENT: "document", SECTION: "section", OTHER: "section"}
    parent_id = None if parent is None else chunk_id(URI, levels[parent], parent)  # type: ignore[arg-type]
    return replace(PLAIN, level=level, text=text, parent_id=parent_id, **fields)  # type: ignore[arg-type]


CHUNKS = (
    made("document", DOCUMENT, summary="About everything."),
    made("section", SECTION, DOCUMENT, summary="About one."),
    made("section", OTHER, DOCUMENT, repo_name="secret"),
    made("chunk", "part a", SECTION, start_line=3, end_line=9, repo_name="open"),
    made("chunk", "part b", SECTION, repo_name="open"),
    made("chunk", "part c", OTHER, repo_name="open"),
    made("chunk", "alone", repo_name="open"),
)


@dataclass(frozen=True)
class Counting:
    """A real reader that counts look-ups."""

    inner: StoreReader
    asked: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def session(self, constants: Bm25 = STANDARD) -> Any:
        return self

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        self.asked.append(len(ids))
        return self.inner.get(ids)


def reader() -> Counting:
    store = MemoryStore()
    store.put([of_chunks(PATH, CHUNKS)])
    store.publish()
    return Counting(store.reader())


def state_of(store: Counting, where: Filter = (), k: int = 10, **values: float) -> QueryState:
    by_text = {chunk.text.replace(" ", "_"): chunk for chunk in store.inner.document_chunks(of_chunks(PATH, CHUNKS).id)}
    return QueryState(Query("q", k, where), hits=tuple(Hit(by_text[text], value) for text, value in values.items()))


def test_attach_gives_document_and_section_outermost_first() -> None:
    store = reader()
    after = AttachParents(store)(state_of(store, part_a=0.9, alone=0.5)).hits
    assert [(each.level, each.text, each.summary) for each in after[0].parents] == [
        ("document", DOCUMENT, "About everything."),
        ("section", SECTION, "About one."),
    ]
    assert after[1].parents == ()
    assert [hit.value for hit in after] == [0.9, 0.5]  # order and scores stay


def test_attach_looks_up_a_level_at_a_time_and_only_for_what_is_shown() -> None:
    """No look-up per hit."""
    store = reader()
    after = AttachParents(store)(state_of(store, k=2, part_a=0.9, part_b=0.8, part_c=0.7)).hits
    assert store.asked == [1, 1]  # one section for both, then the document
    assert after[2].parents == ()


def test_replace_takes_the_best_child_and_its_score() -> None:
    """The best child wins, wherever it stands."""
    store = reader()
    after = ReplaceByParent(store)(state_of(store, part_b=0.5, part_a=0.8, alone=0.7)).hits
    assert [(hit.chunk.text, hit.value) for hit in after] == [(SECTION, 0.8), ("alone", 0.7)]
    assert after[0].child is not None
    assert after[0].child.text == "part a"
    assert after[0].scores[-1].why.endswith("lines 3–9")
    assert after[0].scores[-1].rank == 1
    assert store.asked == [1]


def test_replace_merges_a_parent_that_is_itself_a_hit() -> None:
    """One result, the better one."""
    store = reader()
    found = state_of(store, part_a=0.6, section_one_with_both_parts=0.9)
    # The document above takes the section's place in turn, so give the section no parent here.
    bare = found.hits[1].changed(chunk=replace(found.hits[1].chunk, parent_id=None))
    after = ReplaceByParent(store)(replace(found, hits=(found.hits[0], bare))).hits
    assert [(hit.chunk.text, hit.value) for hit in after] == [(SECTION, 0.9)]


def test_parents_outside_the_filter_are_not_shown() -> None:
    store = reader()
    where = (by_repo("open"),)  # neither section nor document is in it
    state = state_of(store, where, part_c=0.9)
    assert ReplaceByParent(store)(state) is state
    assert AttachParents(store)(state) is state


def test_the_way_through_the_graph_is_carried_over() -> None:
    store = reader()
    way = (EdgeContext("0" * 16, "calls", "a calls b", 1.0, 1),)
    state = state_of(store, part_a=0.6)
    after = ReplaceByParent(store)(replace(state, hits=(state.hits[0].changed(graph=way),))).hits
    assert after[0].graph == way


def test_a_ring_of_parents_ends() -> None:
    one, two = chunk_id("docs/ring", "section", "one"), chunk_id("docs/ring", "section", "two")
    ring = [
        replace(PLAIN, level="section", text="one", parent_id=two),
        replace(PLAIN, level="section", text="two", parent_id=one),
        replace(PLAIN, text="inside", parent_id=one),
    ]
    store = MemoryStore()
    document = of_chunks("ring", ring)
    store.put([document])
    store.publish()
    state = QueryState(Query("q", 5), hits=(Hit(document.chunks[2], 0.5),))
    assert len(AttachParents(store.reader())(state).hits[0].parents) <= 8


def test_no_parent_at_all_changes_nothing() -> None:
    store = reader()
    state = state_of(store, alone=0.5)
    assert ReplaceByParent(store)(state) is state
    assert AttachParents(store)(state) is state
