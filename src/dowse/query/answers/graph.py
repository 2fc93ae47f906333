"""Graph answers: questions about calls, definitions and uses, answered with path and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dowse.filters import Filter
from dowse.identity import number_id
from dowse.link_names import SYMBOL
from dowse.ports import QuerySession
from dowse.query.plan.graph_questions import GraphQuestion
from dowse.query.stages.exact_names import dotted
from dowse.query.stages.legs import passing
from dowse.query.stages.services import ServiceGraph, cited_graph
from dowse.query.stages.state import QueryState
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, ServiceEdge

MOST_SHOWN = 8  # places in an answer; chosen: a screen line or two
MOST_DEFINED = 5  # definitions of a name; chosen: with more, the name alone does not say which one is meant
MOST_SEARCHED = 200  # chunks with a name; chosen
_PLACE = re.compile(r"\((?P<place>[^()]+:\d+)\)")
_CODE_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*")
_SPELLED_AS_CODE = re.compile(r"[_.$\d]|(?<=.)[A-Z]|^[A-Z][a-z]+$")


class AnswerFromGraph(msgspec.Struct, frozen=True):
    """Stage that answers from the service graph or the chunk graph, or changes nothing. It changes no hit."""

    store: QuerySession
    tokenizer: Tokenizer
    question: GraphQuestion
    name: str = "graph_answer"

    def __call__(self, state: QueryState, /) -> QueryState:
        asked, where = self.question, state.query.where
        text = self._about_services(asked, where) if asked.kind != "symbol" else ""
        if not text and asked.kind != "service":
            text = self._about_symbol(asked, where)
        return state.changed(metadata_answer=text) if text else state

    def _about_services(self, asked: GraphQuestion, where: Filter) -> str:
        """Answer for each service that the name may mean. Edges without visible evidence do not count."""
        graph = cited_graph(self.store, where)
        known = ServiceGraph(graph.services, tuple(edge for edge in graph.edges if edge.evidence and edge.description))
        answers = [self._about_service(asked, name, known, where) for name in known.meant(asked.subject)]
        return "\n".join(each for each in answers if each)

    def _about_service(self, asked: GraphQuestion, name: str, graph: ServiceGraph, where: Filter) -> str:
        into = {edge.source: edge for edge in graph.edges if edge.target == name}
        out = {edge.target: edge for edge in graph.edges if edge.source == name}
        match asked.asked:
            case "callers" | "used":
                return _sentence(f"{name} is used by", _cited(into))
            case "callees":
                return _sentence(f"{name} uses", _cited(out))
            case "breaks":
                further = [each for each in graph.blast_radius(name) if each not in into]
                direct = _sentence(f"If {name} is down, it affects", _cited(into))
                return f"{direct} Indirectly also {_listed(further)}." if further else direct
            case "call":
                return "\n".join(f"{out[each].description}." for each in graph.meant(asked.other) if each in out)
            case "defined":
                own = next(each for each in graph.services if each.name == name)
                chunks = self._passing(own.chunk_ids, where)
                places = [_first_line(chunk, name.rpartition("/")[2]) for chunk in chunks]
                return _sentence(f"{name} is defined in", places)

    def _about_symbol(self, asked: GraphQuestion, where: Filter) -> str:
        name = dotted(asked.subject)
        if not _CODE_NAME.fullmatch(name) or not (asked.kind == "symbol" or _SPELLED_AS_CODE.search(name)):
            return ""
        rows = [each.chunk_id for each in self.store.named(SYMBOL, [name]) if each.name == name]
        found = self._passing(rows, where) if len(rows) <= MOST_DEFINED else []
        if not found:
            return ""
        match asked.asked:
            case "defined":
                return f"{name} is defined in {_listed(_definition(chunk, name) for chunk in found)}."
            case "callers":
                return _sentence(f"{name} is called by", self._linked(found, name, where, incoming=True))
            case "callees":
                return _sentence(f"{name} calls", self._linked(found, name, where, incoming=False))
            case "used":
                return self._uses(name, found, where)
            case "call":
                called = dotted(asked.other).rpartition(".")[2]
                lines = [place for chunk in found for place in _lines(chunk, called)]
                return _sentence(f"{name} mentions {called} in", lines) if _CODE_NAME.fullmatch(called) else ""
            case "breaks":
                return ""

    def _linked(self, chunks: Sequence[Chunk], name: str, where: Filter, *, incoming: bool) -> list[str]:
        """Return callers with the line of the call, or callees with their own line."""
        edges = self.store.neighbours([chunk.id for chunk in chunks], incoming=incoming)
        ends = [edge.source_id if incoming else edge.target_id for edge in edges if edge.relation == "calls"]
        found = [each for each in self._passing(dict.fromkeys(ends), where) if each not in chunks]
        names = [each.qualified_name or each.symbol_name or "" for each in found]
        words = [name if incoming else own for own in names]
        places = [_first_line(each, word) for each, word in zip(found, words, strict=True)]
        return [f"{own} ({place})" if own else place for own, place in zip(names, places, strict=True)]

    def _uses(self, name: str, defined: Sequence[Chunk], where: Filter) -> str:
        last = name.rpartition(".")[2]
        terms = self.tokenizer.code(last)
        ids = self.store.search_words("bm25_code", terms[-1:], MOST_SEARCHED, where).ids.tolist() if terms else []
        found = self.store.get([number_id(each) for each in ids]).values()
        chunks = [each for each in found if each.corpus_type.startswith("CODE")]
        own = {_definition(chunk, name) for chunk in defined}
        places = {place for chunk in chunks for place in _lines(chunk, last)} - own
        lines = sorted(places, key=lambda place: (place.rpartition(":")[0], int(place.rpartition(":")[2])))
        more = " or more" if len(ids) == MOST_SEARCHED else ""
        return _sentence(f"{name} is used on {len(lines)}{more} {'line' if len(lines) == 1 else 'lines'}:", lines)

    def _passing(self, ids: Iterable[ChunkId], where: Filter) -> list[Chunk]:
        kept = passing(self.store, ids, where)
        chunks = self.store.get(kept)
        return [chunks[each] for each in kept if each in chunks]


def _cited(edges: Mapping[str, ServiceEdge]) -> list[str]:
    found = [(name, _PLACE.search(edge.description)) for name, edge in edges.items()]
    return [f"{name} ({match['place']})" if match else name for name, match in found]


def _sentence(start: str, parts: Sequence[str]) -> str:
    return f"{start} {_listed(parts)}." if parts else ""


def _listed(parts: Iterable[str]) -> str:
    each = list(dict.fromkeys(parts))
    more = f" and {len(each) - MOST_SHOWN} more" if len(each) > MOST_SHOWN else ""
    return ", ".join(each[:MOST_SHOWN]) + more


def _definition(chunk: Chunk, name: str) -> str:
    own = (each.start_line for each in chunk.defines if f".{each.qualified_name}".endswith(f".{name}"))
    return _place(chunk, next(own, None))


def _lines(chunk: Chunk, name: str) -> Iterator[str]:
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    for number, line in enumerate(chunk.text.split("\n"), chunk.start_line or 1):
        if word.search(line):
            yield _place(chunk, number)


def _first_line(chunk: Chunk, name: str) -> str:
    """Return the place of the first line with the last part of a name, else of the chunk."""
    return next(_lines(chunk, name.rpartition(".")[2]), _place(chunk)) if name else _place(chunk)


def _place(chunk: Chunk, line: int | None = None) -> str:
    return f"{chunk.file_path}:{line or chunk.start_line or 1}"
