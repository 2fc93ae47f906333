"""A filter hides everything else: no part of a result quotes a chunk or names a document outside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dowse
from dowse.engine import Engine
from dowse.filters import Clause, Eq, Filter, Ne, Not, Or, Prefix, by_corpus, by_path, created_after, matches
from dowse.sample import root
from dowse.serve.wire import result as wire
from dowse.types import Chunk

SHORTEST = 25  # characters of a line that counts as a quotation
QUERIES = (
    "why does the booking fail", "retry", "route planner batches", "deploy", "who wrote the runbook",
    "how many runbooks are there", "runbooks by Ada", "booking-api", "payment timeout slack",
)  # fmt: skip
clauses: st.SearchStrategy[Clause] = st.sampled_from(
    [
        by_corpus("CODE"), by_corpus("CODE_LOGIC"), by_corpus("CODE_DEPLOY"), by_corpus("DOC"), by_corpus("CONVO"),
        by_path("services/booking-api/**"), by_path("*.yaml"), by_path("*.md"), Eq("language", "go"),
        Eq("language", "python"), Prefix("symbol_name", "p"), Ne("symbol_kind", "function"),
        Eq("service_name", "booking-api"),
        Ne("author", "nobody"), created_after("2026-03-01"), Prefix("section_type", ""), Ne("channel", "incidents"),
    ]
)  # fmt: skip
filters = st.lists(
    st.recursive(
        clauses,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=2).map(lambda each: Or(tuple(each)))
            | st.lists(inner, min_size=1, max_size=2).map(lambda each: Not(tuple(each)))
        ),
        max_leaves=3,
    ),
    min_size=1,
    max_size=2,
).map(tuple)
fields = st.fixed_dictionaries(
    {},
    optional={
        "parents": st.sampled_from(["attach", "replace", "off"]),
        "graph": st.booleans(),
        "expand_graph": st.booleans(),
        "group": st.sampled_from(["document", "none"]),
        "explain": st.booleans(),
        "profile": st.sampled_from(["default", "engineering", "graph", "entities", "papers", "documents"]),
        "top_k": st.sampled_from([3, 20]),
    },
)


class Corpus:
    """The sample project in an index, and all its chunks. No dataclass: Hypothesis would print them."""

    def __init__(self, engine: Engine) -> None:
        self.engine, reader = engine, engine.reader()
        every = (chunk for info in engine.documents() for chunk in reader.document_chunks(info.id))
        self.chunks: list[Chunk] = [chunk for chunk in every if chunk.level == "chunk"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with dowse.open(tmp_path_factory.mktemp("leaks") / ".dowse", embedder="hash") as engine:
        shutil.copytree(root(), folder := tmp_path_factory.mktemp("sample") / "acme")
        engine.index([folder])
        yield Corpus(engine)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (str(key), *texts(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


def leaked(said: str, chunks: list[Chunk], where: Filter) -> list[str]:
    """Return the lines and paths of excluded chunks that a text has and no chunk that passes has."""
    passing = [chunk for chunk in chunks if matches(chunk, where)]
    visible = "\n".join(f"{c.text}\n{c.source_uri}\n{c.section_path}\n{c.document_title}\n{c.summary}" for c in passing)
    excluded = [chunk for chunk in chunks if not matches(chunk, where)]
    lines = {line.strip() for chunk in excluded for line in chunk.text.splitlines() if len(line.strip()) >= SHORTEST}
    paths = {str(chunk.file_path) for chunk in excluded} - {str(chunk.file_path) for chunk in passing}
    return [each for each in (*lines, *paths) if each in said and each not in visible]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=st.sampled_from(QUERIES), where=filters, fields=fields)
def test_no_part_of_a_result_quotes_what_the_filter_excludes(
    corpus: Corpus, query: str, where: Filter, fields: dict[str, Any]
) -> None:
    engine, chunks = corpus.engine, corpus.chunks
    found = engine.query_facets(query, facets=True, where=where, **fields)
    row = wire.result_object(found.result) | {"facets": found.facets, "query": "", "degraded": []}
    said = "\n".join(texts(row))
    said += "\n".join(each for hit in found.ranked for each in texts(wire.chunk_object(hit)))
    said += engine.context(query, where=where, **fields).text
    assert leaked(said, chunks, where) == []
    passing = [chunk for chunk in chunks if matches(chunk, where)]
    for name, counts in found.facets:
        if name != "month":
            assert {value for value, _ in counts} <= {str(getattr(chunk, name)) for chunk in passing}


def test_the_description_of_a_call_does_not_quote_a_manifest_outside_the_filter(corpus: Corpus) -> None:
    where = (by_corpus("CODE_LOGIC"),)
    result = corpus.engine.query("booking", corpus_filter=["CODE_LOGIC"], expand_graph=True)
    assert result.service_context
    assert leaked("\n".join(texts(wire.result_object(result))), corpus.chunks, where) == []


def test_a_parent_with_an_excluded_part_is_not_shown(tmp_path: Path) -> None:
    mail = (
        "From ada@example.com Thu Jan  1 00:00:00 2026\nFrom: Ada <ada@example.com>\nSubject: Keys\n"
        "Date: Thu, 1 Jan 2026 00:00:00 +0000\nMessage-ID: <1@x>\n\nRotate the keys every month please.\n\n"
        "From bob@example.com Fri Jan  2 00:00:00 2026\nFrom: Bob <bob@example.com>\nSubject: Re: Keys\n"
        "Date: Fri, 2 Jan 2026 00:00:00 +0000\nMessage-ID: <2@x>\nIn-Reply-To: <1@x>\n\n"
        "The vault passphrase hint is my favourite fish.\n"
    )
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "keys.mbox").write_text(mail)
    with dowse.open(tmp_path / ".dowse", embedder=None) as engine:
        engine.index([tmp_path / "mail"])
        for parents in ("attach", "replace"):
            for where in (Not((Prefix("author", "Bob"),)), Not((created_after("2026-01-01T12:00"),))):
                result = engine.query("rotate keys", where=where, parents=parents)
                assert result.chunks
                assert "favourite fish" not in "\n".join(texts(wire.result_object(result)))
