"""Edges between documents: who is meant, who is not, and what is linked again when something changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import dowse
from dowse import sample
from dowse.engine import Engine
from dowse.ingest.chunking.parents import with_structure
from dowse.ingest.links.linker import BATCH, ExtractionCache, link
from dowse.ingest.links.references import ReferenceExtractor, import_paths
from dowse.store.memory import MemoryStore
from dowse.types import Chunk, Defined, Document, Edge, Service
from factories import PLAIN, of_chunks
from values import replace

CODE = replace(PLAIN, corpus_type="CODE_LOGIC", language="python")
PAGE = replace(PLAIN, corpus_type="DOC_PAGE", language="markdown")
TALK = replace(PLAIN, corpus_type="CONVO_SLACK", channel="ops")


def code(path: str, *symbols: str, calls: tuple[str, ...] = (), imports: tuple[str, ...] = ()) -> Document:
    chunks = [
        replace(CODE, text="\n    ".join((f"def {each}", *calls)), symbol_name=each.rpartition(".")[2],
                qualified_name=each, calls_out=calls, imports=imports, file_path=path, start_line=at, end_line=at)
        for at, each in enumerate(symbols, start=1)
    ]  # fmt: skip
    return of_chunks(path, chunks)


def page(path: str, *texts: str, like: Chunk = PAGE) -> Document:
    return of_chunks(path, [replace(like, text=text, file_path=path) for text in texts])


def linked(*documents: Document, services: tuple[Service, ...] = ()) -> MemoryStore:
    store = MemoryStore()
    store.put(documents)
    store.put_services(services, [])
    store.publish()
    link(store, store)
    return store


def edges(store: MemoryStore, document: Document) -> list[tuple[str, str]]:
    """Relation and target's text of all edges that leave a document."""
    found = store.reader().neighbours([chunk.id for chunk in document.chunks])
    chunks = store.reader().get({edge.target_id for edge in found})
    return sorted((edge.relation, chunks[edge.target_id].text) for edge in found)


# --- calls and imports --------------------------------------------------------------------------------


def test_a_call_leads_to_the_only_function_of_that_name() -> None:
    caller = code("a/app.py", "main", calls=("plan_tour", "len"))
    store = linked(caller, code("b/solver.py", "plan_tour"))
    assert edges(store, caller) == [("calls", "def plan_tour")]
    (edge,) = store.reader().neighbours([caller.chunks[0].id])
    assert (edge.weight, edge.description) == (0.8, "as plan_tour")


def test_of_two_functions_of_a_name_the_imported_or_nearest_is_meant_or_none() -> None:
    here, there = code("a/solver.py", "plan_tour"), code("b/solver.py", "plan_tour")
    importing = code("c/app.py", "run_all", calls=("plan_tour",), imports=("b.solver.plan_tour",))
    beside = code("a/app.py", "run_some", calls=("plan_tour",))
    lost = code("c/other.py", "run_none", calls=("plan_tour",))
    store = linked(here, there, importing, beside, lost)
    targets = {edge.source_id: edge.target_id for edge in store.reader().neighbours(
        [each.chunks[0].id for each in (importing, beside, lost)]) if edge.relation == "calls"}  # fmt: skip
    assert targets == {importing.chunks[0].id: there.chunks[0].id, beside.chunks[0].id: here.chunks[0].id}


def test_a_method_is_told_by_its_class_or_by_a_receiver_that_is_called_like_it() -> None:
    store_file = code("a/timelines.py", "TimelineRepository.append")
    by_class = code("b/x.py", "one", calls=("TimelineRepository.append",))
    by_receiver = code("b/y.py", "two", calls=("self.repository.append",))
    by_chance = code("b/z.py", "three", calls=("items.append",))
    store = linked(store_file, by_class, by_receiver, by_chance)
    assert [len(edges(store, each)) for each in (by_class, by_receiver, by_chance)] == [1, 1, 0]


def test_calls_stay_within_a_language_and_everyday_names_are_no_calls() -> None:
    go = of_chunks("a.go", [replace(CODE, text="func", language="go", symbol_name="planTour", file_path="a.go")])
    caller = code("b.py", "main", calls=("planTour", "get", "run"))
    assert edges(linked(go, caller, code("c.py", "get", "run")), caller) == []


def test_a_second_definition_makes_a_call_ambiguous_and_its_end_makes_it_clear_again() -> None:
    caller, first = code("a/app.py", "main", calls=("plan_tour",)), code("b/one.py", "plan_tour")
    second = code("c/two.py", "plan_tour")
    store = linked(caller, first)
    for change, expected in ((lambda: store.put([second]), 0), (lambda: store.remove([second.id]), 1)):
        change()
        store.publish()
        link(store, store)
        assert len(edges(store, caller)) == expected


@pytest.mark.parametrize(
    ("spelled", "paths"),
    [
        ("route_planner.solver.plan_tour", ["route_planner/solver/plan_tour"]),
        ("from route_planner.solver import plan_tour, Tour", ["route_planner/solver", "route_planner/solver/plan_tour",
                                                              "route_planner/solver/Tour"]),
        (".solver", ["./solver"]),
        ("..core.solver", ["./../core/solver"]),
        ("./config.js", ["./config"]),
        ("acme.example/quotes/internal/fuel", ["acme.example/quotes/internal/fuel"]),
        ("crate::solver::Tour", ["solver/Tour"]),
        ('import { a } from "../lib/a"', ["../lib/a"]),
    ],
)  # fmt: skip
def test_imports_are_paths(spelled: str, paths: list[str]) -> None:
    assert list(import_paths(spelled)) == paths


def test_an_import_leads_to_the_module_or_to_the_symbol_in_it() -> None:
    solver, other = code("app/plan/solver.py", "plan_tour"), code("lib/solver.py", "x_tour")
    by_name = code("app/a.py", "one", imports=("app.plan.solver.plan_tour",))
    relative = code("app/plan/b.py", "two", imports=(".solver",))
    unknown = code("app/c.py", "three", imports=("requests", "os.path"))
    store = linked(solver, other, by_name, relative, unknown)
    assert edges(store, by_name) == edges(store, relative) == [("imports", "def plan_tour")]
    assert edges(store, unknown) == []


# --- prose --------------------------------------------------------------------------------------------


def test_prose_mentions_symbols_that_it_spells_as_code() -> None:
    target = code("src/fuel.py", "Client.fetch_prices", "deploy", "planner")
    said = page("docs/a.md", "Look at `fetch_prices` or Client.fetch_prices(), then deploy the planner.")
    assert edges(linked(target, said), said) == [("mentions", "def Client.fetch_prices")]


def test_a_heading_that_names_a_symbol_documents_it() -> None:
    target = code("src/fuel.py", "fetch_prices")
    doc = page("docs/a.md", "## `fetch_prices`\n\nAsks `fetch_prices` until it answers.")
    store = linked(target, doc)
    assert edges(store, doc) == [("documents", "def fetch_prices")]


def test_links_lead_to_files_and_their_sections() -> None:
    target = of_chunks(
        "docs/ops/roll.md",
        [replace(PAGE, text=f"## {name}", section_path=f"# Roll > ## {name}", file_path="docs/ops/roll.md",
                 start_line=at, end_line=at + 4) for at, name in ((1, "First"), (6, "Back, out"))],
    )  # fmt: skip
    doc = page("docs/a.md", "[roll](ops/roll.md#back-out) and [web](https://x.example/roll.md) and [me](#here)")
    talk = page("ops.json", "see docs/ops/roll.md:7", like=TALK)
    store = linked(target, doc, talk)
    assert edges(store, doc) == [("references", "## Back, out")]
    assert edges(store, talk) == [("mentions", "## Back, out")]


def test_a_path_that_could_be_two_files_is_no_mention() -> None:
    talk = page("ops.json", "it is in main.py, I think; or in a/main.py", like=TALK)
    store = linked(code("a/main.py", "start_a"), code("b/main.py", "start_b"), talk)
    assert edges(store, talk) == [("mentions", "def start_a")]


def test_a_code_leads_to_the_page_that_explains_it() -> None:
    codes = page("docs/codes.md", "| WF-5031 | late |")
    raising = replace(CODE, text="raise Problem('WF-5031')", file_path="a.py")
    talk = page("ops.json", "we get WF-5031, see ADR 6", like=TALK)
    adr = of_chunks("adr/0006-x.md", [replace(PAGE, text="budget", corpus_type="DOC_ADR", file_path="adr/0006-x.md")])
    store = linked(codes, of_chunks("a.py", [raising]), talk, adr)
    assert edges(store, talk) == [("mentions", "budget"), ("mentions", "| WF-5031 | late |")]
    assert edges(store, codes) == [("mentions", "raise Problem('WF-5031')")]


def test_services_are_named_as_wholes_and_lead_to_their_workload() -> None:
    def manifest(kind: str) -> Chunk:
        return replace(PLAIN, corpus_type="CODE_DEPLOY", text=f"kind: {kind}", symbol_kind=kind, file_path="k8s.yaml")

    manifests = of_chunks("k8s.yaml", [manifest("Service"), manifest("Deployment")])
    auth = Service("auth", chunk_ids=tuple(chunk.id for chunk in manifests.chunks))
    talk = page("ops.json", "Auth is slow; auth-service and oauth are other things", like=TALK)
    other = page("more.json", "auth-service and oauth", like=TALK)
    store = linked(manifests, talk, other, services=(auth,))
    assert edges(store, talk) == [("mentions", "kind: Deployment")]
    assert edges(store, other) == []


def test_a_manifest_deploys_the_code_of_its_service() -> None:
    def run(kind: str) -> Chunk:
        return replace(
            PLAIN, corpus_type="CODE_DEPLOY", text=f"kind: {kind} auth", symbol_kind=kind, service_name="auth"
        )

    manifests = of_chunks("k8s.yaml", [run("Deployment"), run("NetworkPolicy")])
    entry = code("services/auth/main.py", "main_entry")
    deeper = code("services/auth/lib/deep/main.py", "main_other")
    store = linked(manifests, entry, deeper)
    assert edges(store, manifests) == [("deploys", "def main_entry")]


def test_a_late_reply_leads_to_where_its_thread_began() -> None:
    def said(text: str, day: int) -> Chunk:
        return replace(TALK, text=text, thread_id="1.5", timestamp=datetime(2026, 3, day, tzinfo=UTC))

    first, late = of_chunks("ops/18.json", [said("who broke it?", 18)]), of_chunks("ops/19.json", [said("me", 19)])
    store = linked(late, first)
    assert edges(store, late) == [("replies_to", "who broke it?")]
    assert edges(store, first) == []


# --- changes ------------------------------------------------------------------------------------------


def test_a_new_name_is_linked_from_documents_that_spoke_of_it_before() -> None:
    talk, other = page("ops.json", "fetch_prices fails", like=TALK), page("b.json", "lunch?", like=TALK)
    store = linked(talk, other)
    assert edges(store, talk) == []
    store.put([code("src/fuel.py", "fetch_prices")])
    store.publish()
    assert link(store, store).documents == 2  # the new one and the one that names it
    assert edges(store, talk) == [("mentions", "def fetch_prices")]


def test_a_changed_target_is_found_again_and_a_removed_one_is_let_go() -> None:
    talk = page("ops.json", "fetch_prices fails", like=TALK)
    store = linked(talk, code("src/fuel.py", "fetch_prices"))
    changed = of_chunks(
        "src/fuel.py", [replace(code("src/fuel.py", "fetch_prices").chunks[0], text="def fetch_prices: 2")]
    )
    store.put([changed])
    store.publish()
    link(store, store)
    assert edges(store, talk) == [("mentions", "def fetch_prices: 2")]
    store.remove([changed.id])
    store.publish()
    link(store, store)
    assert list(store.reader().neighbours([talk.chunks[0].id])) == []


def test_nothing_is_done_twice() -> None:
    store = linked(page("ops.json", "fetch_prices fails", like=TALK), code("src/fuel.py", "fetch_prices"))
    assert link(store, store).documents == 0
    assert list(store.renamed()) == []


NAMES = ("fetch_prices", "Cart.total_cents", "plan_tour")
TEXTS = ("`fetch_prices` and Cart.total_cents", "plan_tour() in a.py", "nothing", "see b.md and [c](c.md)")
FILES = st.dictionaries(
    st.sampled_from(["a.py", "b.md", "c.md", "d.py", "e.json"]),
    st.tuples(st.lists(st.sampled_from(NAMES), max_size=2, unique=True), st.lists(st.sampled_from(TEXTS), max_size=2)),
    max_size=5,
)


def _made(files: dict[str, tuple[list[str], list[str]]]) -> list[Document]:
    return [
        code(path, *names, calls=NAMES[-1:]) if path.endswith(".py") else page(path, *texts)
        for path, (names, texts) in files.items()
    ]


@seed(6)
@settings(max_examples=60, deadline=None)
@given(before=FILES, after=FILES)
def test_linking_what_changed_gives_what_linking_all_gives(
    before: dict[str, tuple[list[str], list[str]]], after: dict[str, tuple[list[str], list[str]]]
) -> None:
    store, documents = linked(*_made(before)), _made(after)
    store.remove([each.id for each in _made(before) if each.path not in after])
    store.put(documents)
    store.publish()
    link(store, store)
    anew = linked(*documents)
    ids = [chunk.id for document in documents for chunk in document.chunks]
    assert list(store.reader().neighbours(ids)) == list(anew.reader().neighbours(ids))


@seed(6)
@settings(max_examples=100, deadline=None)
@given(
    text=st.text(alphabet="aZ_.`#()[]<>:|/-0 \n\"'", max_size=200), corpus=st.sampled_from(["DOC_PAGE", "CODE_LOGIC"])
)
def test_any_text_gives_a_bounded_list_of_references(text: str, corpus: str) -> None:
    chunk = replace(PLAIN, text=text, corpus_type=corpus, calls_out=(text,), imports=(text,))
    assert len(ReferenceExtractor().references_of(chunk)) <= 64


def test_a_chunk_of_many_definitions_is_found_by_each() -> None:
    defines = (Defined("A", "class", "pkg.AlphaError", 1, 2), Defined("B", "class", "pkg.BetaError", 4, 5))
    both = replace(CODE, text="errors", symbol_name="AlphaError", qualified_name="pkg.AlphaError", defines=defines)
    talk = page("ops.json", "BetaError again", like=TALK)
    assert edges(linked(of_chunks("e.py", [both]), talk), talk) == [("mentions", "errors")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "see Cart.total(), load_all and (loadAll)",
            ["Cart.total", "total", "load_all", "loadAll"],
        ),  # a file, or a name
        ("a/b.py:7 b.py\u2003b.py INC-207,\tINC-207", ["INC-207", "b.py", "b.py"]),  # one with its line
        ("`load_all`x.y `[f](a.md)", ["a.md", "x.y", "load_all"]),
    ],
)
def test_what_a_page_speaks_of_is_found_word_by_word(text: str, found: list[str]) -> None:
    assert [each.name for each in ReferenceExtractor().references_of(replace(PAGE, text=text))] == found


def test_what_was_heard_is_linked_as_if_it_were_read_again() -> None:
    documents = (
        code("shop/cart.py", "Cart.total", calls=("price_of",), imports=("shop.prices",)),
        code("shop/prices.py", "price_of"),
        page("docs/cart.md", "`Cart.total` asks price_of, see shop/prices.py"),
    )
    cache = ExtractionCache()
    for document in documents[1:]:
        cache.add(document)
    store = MemoryStore()
    store.put(documents)
    store.publish()
    link(store, store, cache=cache)
    ids = [chunk.id for document in documents for chunk in document.chunks]
    assert list(store.reader().neighbours(ids)) == list(linked(*documents).reader().neighbours(ids)) != []


def test_a_name_that_differs_by_case_from_one_of_an_earlier_batch_is_not_counted_twice() -> None:
    """Forty may bear a name; asked for `Load` and later for `load`, the thirty of `Load` must not become sixty."""
    many = [code(f"m{at:03}/store.py", f"Store{at:03}.Load") for at in range(30)]
    first = code("a.py", "one", calls=("Store000.Load", "Store001.Load"))
    between = [code(f"z{at:03}.py", f"filler{at}") for at in range(BATCH)]
    other, last = code("b/x.py", "load"), code("c.py", "two", calls=("Store002.Load", "x.load"))
    store = linked(first, *many, *between, other, last)
    assert ("calls", "def Store002.Load") in edges(store, last)


# --- structure ----------------------------------------------------------------------------------------


def test_structure_says_what_is_part_of_what_and_what_comes_first() -> None:
    whole = replace(PAGE, text="whole", level="document")
    given = of_chunks("a.md", [whole, *(replace(PAGE, text=text) for text in ("one", "two", "three"))])
    top, one, two, three = (chunk.id for chunk in given.chunks)
    chunks = (given.chunks[0], *(replace(chunk, parent_id=top) for chunk in given.chunks[1:]))
    own = Edge(one, two, "sequence", 0.5, "the reader's word")
    found = with_structure(replace(given, chunks=chunks, edges=(own,))).edges
    assert found == (
        own,
        Edge(one, top, "part_of", 1.0),
        Edge(two, top, "part_of", 1.0),
        Edge(three, top, "part_of", 1.0),
        Edge(two, three, "sequence", 1.0),
    )


# --- the sample company -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("company")
    files = shutil.copytree(sample.root(), place / "acme")  # inside a repository its paths would be that repository's
    with dowse.open(place / "index", embedder=None) as engine:
        engine.index([files], embed=False)
        yield engine


@pytest.mark.parametrize(
    ("target", "relation", "other"),
    [
        ("Client.fetchWithBackoff", "mentions", "slack-export/deploys/2026-02-25.json"),
        ("RetryBudget.tryWithdraw", "calls", "services/booking-api/src/quotes.ts"),
        ("Planner.plan_batch", "calls", "services/route-planner/route_planner/solver.py"),
        ("RecipientNotifier.isQuietHour", "mentions", "slack-export/lantern/2026-04-14.json"),
        ("docs/runbooks/quote-latency.md", "mentions", "slack-export/incidents/2026-02-11.json"),
        ("docs/error-codes.md", "mentions", "slack-export/incidents/2026-03-18.json"),
        ("docs/adr/0006-retry-budget.md", "references", "docs/incidents/2026-02-11-quote-retry-storm.md"),
        ("slack-export/incidents/2026-03-18.json", "replies_to", "slack-export/incidents/2026-03-19.json"),
        ("services/route-planner/route_planner/app.py", "deploys", "deploy/k8s/route-planner.yaml"),
        ("services/booking-api/src/server.ts", "imports", "services/booking-api/src/quotes.ts"),
    ],
)
def test_the_sample_is_tied_together_across_kinds(company: Engine, target: str, relation: str, other: str) -> None:
    place = f"acme/{target}" if "/" in target else target
    found = company.related(place, relations=[relation], limit=200)
    assert any(str(each.chunk.file_path).endswith(other) for each in found.neighbours)


def test_no_edge_of_the_sample_dangles_and_every_weight_is_a_share(company: Engine) -> None:
    reader = company.reader()
    ids = [chunk.id for info in company.documents("acme") for chunk in reader.document_chunks(info.id)]
    found = list(reader.neighbours(ids))
    assert len(found) > 500
    assert all(0 < edge.weight <= 1 for edge in found)
    assert {edge.target_id for edge in found} <= set(ids)
