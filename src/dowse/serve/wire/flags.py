"""The flags of `dowse search`: what is typed enters, click options named after the fields they fill leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dowse.serve.wire import flag_values as cli_values

Decorator = Callable[[Any], Any]


def _many(*names: str, show: str, help: str) -> Decorator:
    """May be given several times; a chunk passes when any of the values fits."""
    return click.option(*names, multiple=True, metavar=show, help=help)


def _parsed(*names: str, by: Callable[..., Any], show: str, help: str, many: bool = False) -> Decorator:
    return click.option(*names, callback=by, multiple=many, metavar=show, help=help)


def _number(*names: str, kind: type[int] | type[float], help: str, show: str = "N") -> Decorator:
    """Any number: what is out of range is told by the engine, so that every face says the same."""
    return click.option(*names, type=kind, metavar=show, help=help)


def _switch(name: str, *field: str, help: str) -> Decorator:
    """On, off, or as the profile says."""
    return click.option(f"{name}/--no-{name.removeprefix('--')}", *field, default=None, help=help)


REQUEST = (
    _number("-k", "--limit", "top_k", kind=int, help="How many hits; else what the profile says (10)."),
    _many("--corpus", "corpus_filter", show="KIND", help="CODE, DOC, CONVO, or in full such as DOC_ADR."),
    _many("--repo", "repo_filter", show="NAME", help="Only this repository."),
    _many("--service", "service_filter", show="NAME", help="Only this service."),
    _many("-t", "--lang", "language_filter", show="NAME", help="Only this language."),
    _many("-g", "--path", "path_filter", show="GLOB", help="Only paths like '*.py' or 'docs/**'."),
    _many("--document", "document_filter", show="ID", help="Only this document."),
    _many("--source", "source_filter", show="NAME", help="Only this source; `dowse status` names them."),
    _many("--section", "section_filter", show="KIND", help="Only this kind of section."),
    _many("--channel", "channel_filter", show="NAME", help="Only this channel."),
    _many("--author", "author_filter", show="NAME", help="Only by this author."),
    _parsed("--since", "created_after", by=cli_values.since, show="WHEN", help="From 90d, 2w, 6mo, 1y ago or a day."),
    _parsed("--until", "created_before", by=cli_values.until, show="WHEN", help="Up to then; a day counts wholly."),
    _parsed("--meta", "meta_filter", by=cli_values.pairs, show="KEY=VALUE", help="Only with this metadata.", many=True),
    _parsed("--legs", by=cli_values.legs, show="LEG,…", help="Of dense, bm25_code, bm25_nlp; else all."),
    click.option("--fusion", type=click.Choice(["z", "rrf", "minmax"]), help="How the legs become one list."),
    _number("--alpha", kind=float, show="0..1", help="Weight of the dense leg; the word legs share the rest."),
    _parsed("--weight", "weights", by=cli_values.weights, show="LEG=W", help="Of a leg; not with --alpha.", many=True),
    _number("--rank-constant", "k", kind=int, help="RRF: the constant added to each rank, usually 60."),
    _number("--missing-rank", "missing_rank", kind=int, help="RRF: the rank of what a leg did not find."),
    _number("--depth", kind=int, help="How many candidates each leg brings."),
    click.option("--profile", metavar="NAME", help="The named query pipeline; docs/profiles.md tells them apart."),
    _parsed("--type", "query_type", by=cli_values.query_type, show="TYPE", help="factual, conceptual …"),
    _switch("--expand", help="Ask in other words, too; needs an LLM."),
    click.option("--rerank", metavar="NAME,…", help="none, heuristic, score, cross-encoder or llm; or several."),
    _number("--rerank-weight", kind=float, show="0..1", help="Of the reranker; what came before has the rest."),
    _number("--half-life", "freshness_half_life_days", kind=float, show="DAYS", help="When talk is half as fresh."),
    _number("--freshness", "freshness_weight", kind=float, show="0..1", help="How much that counts; 0 for nothing."),
    _switch("--boost", help="Prefer the kinds of writing that the words ask for."),
    click.option("--parents", type=click.Choice(["off", "replace", "attach"]), help="Sections around hits."),
    _number("--min-score", kind=float, show="0..1", help="Drop hits below this final score."),
    _number("--min-similarity", kind=float, show="COS", help="Drop what only its vector found, below this cosine."),
    _switch("--mmr", help="Hits that differ from each other."),
    _number("--diversity", kind=float, show="0..1", help="How much likeness takes off, with --mmr."),
    _switch("--graph", help="Neighbours in the chunk graph join the pool."),
    _number("--graph-hops", kind=int, help="How many edges away; 1 or 2."),
    _number("--graph-weight", kind=float, show="0..1", help="Of the way through the graph."),
    _many("--relation", "graph_relations", show="NAME", help="Follow only these edges, such as calls."),
    _number("--graph-min-weight", kind=float, show="0..1", help="Weaker edges are not followed."),
    _switch("--graph-bidirectional", help="Follow edges backwards, too."),
    _number("--graph-slots", kind=int, help="Hits that are kept for what the graph found."),
    _switch("--services", "expand_graph", help="Add the services around the hits."),
    click.option("--explain", is_flag=True, help="Each hit's way through the stages, and why."),
    click.option("--cache/--no-cache", default=True, help="Use what earlier queries left behind; else do not."),
    _number("--deadline", "deadline_s", kind=float, show="SECONDS", help="Then optional stages are skipped."),
    click.option("--strict", is_flag=True, help="Fail when every leg failed, instead of finding nothing."),
)  # fmt: skip
"""One for each field of QueryRequest, and named after it; a test compares the two."""

OUTPUT = (
    click.option("--jsonl", is_flag=True, help="Print each hit as one line of JSON."),
    click.option("--trec", is_flag=True, help="Print a TREC run; a query may be ID, a tab and its text."),
    click.option("-l", "--files-with-matches", "files", is_flag=True, help="Print paths only, each once."),
    click.option("-0", "--null", "null", is_flag=True, help="With -l: end each path with NUL, for xargs -0."),
    click.option(
        "-C",
        "--context",
        "context_lines",
        type=click.IntRange(0),
        default=1,
        metavar="N",
        help="On a terminal: lines around a hit's best line.",
    ),
)


def add(options: tuple[Decorator, ...]) -> Decorator:
    """All of them, in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
