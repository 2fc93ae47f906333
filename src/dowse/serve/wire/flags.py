"""Table of query flags: a field's name and typed texts enter, a value of a QueryRequest leaves.

The command line builds its options from this table, and the page spells the commands it offers to copy with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from dowse.errors import BadRequestError
from dowse.query.plan.operators import parse_moment

BOOLEAN = "true|false"
MOMENTS = ("created_after", "created_before")
_EXPECTED = {
    "N": "a whole number",
    "0..1": "a number from 0 to 1",
    "COSINE": "a number from -1 to 1",
    "LEG,...": "names of legs: dense, bm25_code, bm25_nlp",
    "LEG=W": "LEG=W, such as dense=0.7",
}


class QueryField(msgspec.Struct, frozen=True):
    """One field of a QueryRequest as users type it: by a flag of its own or by `--set NAME=VALUE`."""

    name: str
    value: str  # metavariable
    help: str
    group: str
    flags: tuple[str, ...] = ()  # everyday flags; the last one is the long one
    old: str = ""  # flag of version 0.1, accepted with a note

    @property
    def is_switch(self) -> bool:
        return self.value == BOOLEAN

    @property
    def spelling(self) -> str:
        """The words before the value."""
        return self.flags[-1].partition("/")[0] if self.flags else f"--set {self.name}="


def _group(group: str, *rows: tuple[str, str, str, str], everyday: bool = False) -> tuple[QueryField, ...]:
    return tuple(
        QueryField(name, value, help, group, tuple(flags.split()) if everyday else (), "" if everyday else flags)
        for name, value, flags, help in rows
    )


EVERYDAY = (
    *_group(
        "What",
        ("corpus_filter", "KIND", "--corpus", "Search CODE, DOC, CONVO or one kind such as DOC_ADR [default: all]."),
        ("language_filter", "NAME", "-t --lang", "Search one programming language [default: all]."),
        ("author_filter", "NAME", "--author", "Search the text of one author [default: all]."),
        ("group", "document|none", "--group",
         "Group results by document, or list single passages [default: document; none in JSON]."),
        ("syntax", "plain|operators", "--syntax",
         'Read "phrases", -words and filters such as lang:go in the query, or take it as it is [default: operators].'),
        ("profile", "NAME", "--profile", "Use a named query pipeline; see docs/profiles.md [default: default]."),
        ("expand", BOOLEAN, "--expand/--no-expand",
         "Also search for paraphrases by a language model [default: by profile]."),
        ("rerank", "NAME,...", "--rerank",
         "Rerank by none, heuristic, score, cross-encoder or llm [default: cross-encoder, if configured]."),
        everyday=True,
    ),
    *_group(
        "Where",
        ("path_filter", "GLOB", "-g --path", "Search matching paths, such as '*.py' or 'docs/**' [default: all]."),
        ("repo_filter", "NAME", "--repo", "Search one repository [default: all]."),
        ("service_filter", "NAME", "--service", "Search one service [default: all]."),
        ("source_filter", "NAME", "--source", "Search one source; 'dowse status' lists them [default: all]."),
        everyday=True,
    ),
    *_group(
        "When",
        ("created_after", "DATE", "--since", "Search text newer than a date, or an age: 90d, 2w, 6mo [default: any]."),
        ("created_before", "DATE", "--until",
         "Search text up to a date (inclusive), or older than an age [default: any]."),
        everyday=True,
    ),
    *_group("How many", ("top_k", "N", "-k --limit", "Return up to N results [default: 10]."), everyday=True),
    *_group("Output", ("explain", BOOLEAN, "--explain", "Show how each stage scored a result."), everyday=True),
)  # fmt: skip

FINER = (
    *_group(
        "Filters",
        ("document_filter", "ID", "--document", "Search one document, by its id [default: all]."),
        ("section_filter", "KIND", "--section", "Search one kind of section, such as abstract [default: all]."),
        ("channel_filter", "NAME", "--channel", "Search one channel [default: all]."),
        ("meta_filter", "KEY=VALUE", "--meta", "Search documents with this metadata [default: all]."),
    ),
    *_group(
        "Search legs and fusion",
        ("legs", "LEG,...", "--legs", "Use these search legs: dense, bm25_code, bm25_nlp [default: all]."),
        ("fusion", "z|rrf|minmax", "--fusion", "Choose the formula that combines the legs' scores [default: z]."),
        ("alpha", "0..1", "--alpha", "Set the weight of the dense leg; the word legs share the rest [default: 0.7]."),
        ("weights", "LEG=W", "--weight", "Set the weight of one search leg. Cannot be combined with alpha."),
        ("k", "N", "--rank-constant", "Set the constant added to each rank, with fusion=rrf [default: 60]."),
        ("missing_rank", "N", "--missing-rank", "Set the rank of chunks a leg did not find, with rrf [default: none]."),
        ("depth", "N", "--depth", "Fetch N candidates from each leg [default: 100]."),
        ("query_type", "TYPE", "--type",
         "Set the query type: factual, conceptual, comparison or metadata [default: detected]."),
    ),
    *_group(
        "Ranking",
        ("rerank_weight", "0..1", "--rerank-weight", "Set the weight of the reranker's score [default: 0.7]."),
        ("freshness_half_life_days", "DAYS", "--half-life",
         "Halve the freshness boost of a conversation every DAYS days [default: 90]."),
        ("freshness_weight", "0..1", "--freshness", "Set the weight of the freshness boost [default: 0.1]."),
        ("boost", BOOLEAN, "--boost/--no-boost", "Boost the kinds of text that the query names [default: true]."),
        ("parents", "off|replace|attach", "--parents",
         "Attach the section around a result, or return it instead of the result [default: attach]."),
        ("min_score", "0..1", "--min-score", "Drop results below this final score [default: 0]."),
        ("min_similarity", "COSINE", "--min-similarity",
         "Drop results that only the dense leg found, below this cosine [default: none]."),
        ("mmr", BOOLEAN, "--mmr/--no-mmr", "Prefer results that differ from each other [default: false]."),
        ("diversity", "0..1", "--diversity",
         "Set the penalty for results similar to earlier ones, with mmr [default: 0.3]."),
    ),
    *_group(
        "Graph",
        ("graph", BOOLEAN, "--graph/--no-graph", "Add chunks linked to the best candidates [default: false]."),
        ("graph_hops", "N", "--graph-hops", "Follow up to N links, 1 or 2 [default: 2]."),
        ("graph_weight", "0..1", "--graph-weight", "Set the weight of links against the cosine [default: 0.3]."),
        ("graph_relations", "NAME", "--relation", "Follow one relation, such as calls [default: all]."),
        ("graph_min_weight", "0..1", "--graph-min-weight", "Skip links weaker than this [default: 0]."),
        ("graph_bidirectional", BOOLEAN, "--graph-bidirectional/--no-graph-bidirectional",
         "Also follow links backwards [default: false]."),
        ("graph_slots", "N", "--graph-slots", "Reserve N results for linked chunks [default: 2]."),
        ("expand_graph", BOOLEAN, "--services/--no-services", "Add services to the JSON result [default: false]."),
    ),
    *_group(
        "Run",
        ("cache", BOOLEAN, "--cache/--no-cache", "Use caches; false recomputes everything [default: true]."),
        ("deadline_s", "SECONDS", "--deadline", "Skip optional stages after SECONDS [default: none]."),
        ("strict", BOOLEAN, "--strict", "Fail if every leg fails, instead of returning nothing [default: false]."),
    ),
)  # fmt: skip

FIELDS = {each.name: each for each in (*EVERYDAY, *FINER)}
"""One for each field of a QueryRequest that fits a command line; a test compares the two."""


def known(name: str) -> QueryField:
    """Return the field of that name, or raise an error that names the nearest one."""
    if name in FIELDS:
        return FIELDS[name]
    from difflib import get_close_matches

    spelled = name.strip("-").replace("-", "_")
    by_flag = {
        flag.partition("/")[0].strip("-").replace("-", "_"): each.name
        for each in FIELDS.values()
        for flag in (*each.flags, each.old)
    }
    names = {each: each for each in FIELDS} | by_flag
    close = [spelled] if spelled in names else get_close_matches(spelled, names, n=1)
    advice = f"did you mean {names[close[0]]!r}?" if close else "run 'dowse search --help-all' for the names"
    raise BadRequestError(f"unknown setting {name!r}; {advice}")


def value_of(name: str, texts: Sequence[str]) -> Any:
    """Convert typed texts to a field's value; ranges are checked by the engine, for every interface alike."""
    from dowse.serve.wire.request import from_texts

    if name in MOMENTS:
        return parse_moment(texts[-1], datetime.now(UTC), end=name == "created_before")
    field = FIELDS[name]
    try:
        return from_texts(name, list(texts))
    except BadRequestError as err:
        expected = _EXPECTED.get(field.value, field.value)
        flag = field.spelling.strip("=")
        raise BadRequestError(f"invalid value {texts[-1]!r} for {flag}: expected {expected}") from err


def words(name: str, texts: Sequence[str]) -> list[str]:
    """Spell a field and its values as arguments of `dowse search`."""
    field = FIELDS[name]
    if not field.flags:
        return [word for text in texts for word in ("--set", f"{name}={text}")]
    on, _, off = field.flags[-1].partition("/")
    if field.is_switch:
        return [on if texts[-1] == "true" else off]
    return [word for text in texts for word in (on, text)]
