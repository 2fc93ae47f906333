"""Core values: structs inside; a request, a result and all values in it, which users hold, are dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dowse.filters import Clause, Filter, Moment
from dowse.reports import Degradation as Degradation
from dowse.reports import QueryMetadata
from dowse.views import HitViews

ChunkId = str  # 16 hexadecimal digits: a hash of source, level, text and occurrence, so that moved lines keep it
Leg = str  # one of LEGS, or the name of a leg that a user plugged in
LEGS: tuple[Leg, ...] = ("dense", "bm25_code", "bm25_nlp")
Role = Literal["query", "chunk"]
Level = Literal["document", "section", "chunk"]


class CorpusType(StrEnum):
    """Kind of text in a chunk. The part before the underscore is its family: CODE, DOC or CONVO."""

    CODE_LOGIC = "CODE_LOGIC"
    CODE_DEPLOY = "CODE_DEPLOY"
    CODE_CONFIG = "CODE_CONFIG"
    DOC_README = "DOC_README"
    DOC_RUNBOOK = "DOC_RUNBOOK"
    DOC_ADR = "DOC_ADR"
    DOC_PAPER = "DOC_PAPER"
    DOC_PAGE = "DOC_PAGE"
    CONVO_SLACK = "CONVO_SLACK"
    CONVO_TRANSCRIPT = "CONVO_TRANSCRIPT"
    CONVO_OTHER = "CONVO_OTHER"


@dataclass(frozen=True)
class Defined:
    """A name that a chunk defines: a function, a class, a constant."""

    name: str
    kind: str
    qualified_name: str  # parts joined by dots in every language
    start_line: int  # of the name, from 1, without comments and decorators above it
    end_line: int  # inclusive; may lie beyond the chunk


class Chunk(msgspec.Struct, frozen=True):
    """A passage of a document. Only those of level "chunk" are searched; the others are their parents."""

    id: ChunkId
    document_id: str
    text: str
    corpus_type: str
    source_uri: str
    document_title: str = ""
    document_source: str = ""
    parent_id: ChunkId | None = None
    level: Level = "chunk"
    repo_name: str | None = None
    file_path: str | None = None
    language: str | None = None
    start_line: int | None = None  # from 1, inclusive
    end_line: int | None = None  # inclusive
    symbol_name: str | None = None
    symbol_kind: str | None = None
    qualified_name: str | None = None
    signature: str | None = None
    summary: str | None = None
    section_path: str | None = None
    section_type: str | None = None
    page: int | None = None
    service_name: str | None = None
    author: str | None = None
    timestamp: datetime | None = None  # aware, UTC
    channel: str | None = None
    thread_id: str | None = None
    calls_out: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    connection_count: int = 0
    content_hash: str = ""  # of the embedded text: context_prefix, newline, text
    context_prefix: str = ""
    meta: tuple[tuple[str, str], ...] = ()  # for filters of the user
    defines: tuple[Defined, ...] = ()  # by line; in code, one chunk defines each name


class Edge(msgspec.Struct, frozen=True):
    """A directed link between two chunks."""

    source_id: ChunkId
    target_id: ChunkId
    relation: str
    weight: float = 1.0
    description: str = ""


class Service(msgspec.Struct, frozen=True):
    """A node of the service graph."""

    name: str
    repo_name: str | None = None
    language: str | None = None
    namespace: str | None = None
    ports: tuple[int, ...] = ()
    chunk_ids: tuple[ChunkId, ...] = ()  # where it is declared
    external: bool = False  # known only from its callers


class ServiceEdge(msgspec.Struct, frozen=True):
    """A call from one service to another. Both ends are names of services."""

    source: str
    target: str
    type: str = "unknown"  # http, grpc, queue, db …
    evidence: tuple[ChunkId, ...] = ()
    description: str = ""


class ServiceFact(msgspec.Struct, frozen=True):
    """A fact about a service in one chunk. ingest/services/graph.py builds the service graph from all facts."""

    kind: str  # declares, alias, port, sets, takes, reads, offers, stub, calls
    service: str = ""  # "" until the location of its file decides
    name: str = ""  # a variable, another name, a set of settings, a gRPC service
    value: str = ""  # an address, a port
    type: str = ""  # http, grpc, queue, db; "" if the chunk does not show it
    chunk_id: ChunkId = ""
    place: str = ""  # file and line
    repo: str = ""
    namespace: str = ""
    language: str = ""


class Document(msgspec.Struct, frozen=True):
    """One file, set of threads or paper, with its chunks. It is stored as a whole or not at all."""

    id: str
    source: str  # name of the Source it belongs to
    path: str  # inside the source, with forward slashes
    title: str
    content_hash: str  # of the bytes as read
    chunks: tuple[Chunk, ...]
    edges: tuple[Edge, ...] = ()
    size_bytes: int = 0
    modified_ns: int = 0
    meta: tuple[tuple[str, str], ...] = ()
    facts: tuple[ServiceFact, ...] = ()


class DocumentInfo(msgspec.Struct, frozen=True):
    """A stored document without its chunks."""

    id: str
    source: str
    path: str
    title: str
    content_hash: str
    chunk_count: int
    size_bytes: int
    modified_ns: int
    indexed_at: datetime
    meta: tuple[tuple[str, str], ...] = ()


class Source(msgspec.Struct, frozen=True):
    """An indexed folder or file. Its name is the prefix of every source_uri below it."""

    name: str
    root: str  # absolute path on this machine


class QueryType(StrEnum):
    """Type of a query; sets parameters in the `papers` profile and the style of an answer."""

    FACTUAL = "factual"
    CONCEPTUAL = "conceptual"
    COMPARISON = "comparison"
    METADATA = "metadata"


Fusion = Literal["z", "rrf", "minmax"]
ParentMode = Literal["off", "replace", "attach"]
Grouping = Literal["document", "none"]


@dataclass(frozen=True)
class QueryRequest:
    """A query and its options. None means: as the profile has it."""

    text: str
    top_k: int | None = None
    profile: str = "default"
    syntax: Literal["plain", "operators"] = "plain"  # operators: read "phrases", -words, lang:go
    group: Grouping | None = None  # document: top_k counts documents, each with its best passages
    corpus_filter: tuple[str, ...] = ()
    service_filter: tuple[str, ...] = ()
    repo_filter: tuple[str, ...] = ()
    document_filter: tuple[str, ...] = ()
    source_filter: tuple[str, ...] = ()
    language_filter: tuple[str, ...] = ()
    path_filter: tuple[str, ...] = ()  # globs; one must match
    section_filter: tuple[str, ...] = ()
    channel_filter: tuple[str, ...] = ()
    author_filter: tuple[str, ...] = ()
    created_after: Moment | None = None  # datetime, ISO 8601 or seconds since the epoch
    created_before: Moment | None = None
    meta_filter: tuple[tuple[str, str], ...] = ()
    where: Filter = ()  # further clauses, ANDed with the filters above
    legs: tuple[Leg, ...] = LEGS
    fusion: Fusion | None = None
    alpha: float | None = None  # weight of the dense leg; the two word legs share 1 − alpha
    weights: tuple[tuple[Leg, float], ...] | None = None  # by leg; excludes alpha
    k: int | None = None  # RRF's rank constant
    missing_rank: int | None = None  # RRF: the rank of chunks that a leg did not find; None adds nothing
    depth: int | None = None  # candidates per leg
    query_type: QueryType | None = None  # else rules or a configured LLM decide
    expand: bool | None = None  # search other wordings, too; needs an LLM
    rerank: bool | str | None = None  # False, True (the profile's chain), or names: a list, or joined by commas
    rerank_weight: float | None = None  # of the reranker's score; the score before it has the rest
    freshness_half_life_days: float | None = None
    freshness_weight: float | None = None  # 0: off
    boost: bool | None = None  # of corpus types that the words of the query ask for
    parents: ParentMode | None = None
    min_score: float | None = None  # on final_score, in [0,1]
    min_similarity: float | None = None  # on the cosine of hits without a query word
    mmr: bool | None = None  # diverse hits
    diversity: float | None = None  # penalty of MMR for similarity
    graph: bool | None = None  # add neighbours in the chunk graph
    graph_hops: int | None = None
    graph_weight: float | None = None  # of the path through the graph; the cosine has the rest
    graph_relations: tuple[str, ...] = ()  # empty: all
    graph_min_weight: float | None = None  # weaker edges are not followed
    graph_bidirectional: bool | None = None  # follow edges in both directions
    graph_slots: int | None = None  # reserved ranks for chunks that the graph found
    expand_graph: bool | None = None  # add the services of the hits as service_context
    explain: bool = False
    cache: bool = True
    deadline_s: float | None = None
    strict: bool = False  # raise NoRecallError when every leg failed

    def __post_init__(self) -> None:
        """Turn lists into tuples and a single name into a tuple of one, so that a request hashes."""
        own = vars(self)
        for name in _TUPLES:
            if type(value := own[name]) is not tuple:
                own[name] = (value,) if isinstance(value, str | Clause) else tuple(value or ())
        own["rerank"] = ",".join(map(str, self.rerank)) if isinstance(self.rerank, list | tuple) else self.rerank
        own["weights"] = tuple(self.weights.items()) if isinstance(self.weights, dict) else self.weights


_TUPLES = ("where", "legs", "graph_relations", *(each for each in vars(QueryRequest) if each.endswith("_filter")))


@dataclass(frozen=True)
class Score:
    """Score of one stage for one chunk."""

    stage: str
    value: float  # in that stage's own unit; not comparable between stages
    rank: int  # from 1, in the list of that stage; 0 if the stage does not rank it
    why: str = ""


@dataclass(frozen=True)
class ParentContext:
    """A section or document around a chunk."""

    id: ChunkId
    level: str
    text: str
    summary: str | None = None


@dataclass(frozen=True)
class EdgeContext:
    """An edge on the path to a chunk, as a sentence."""

    from_id: ChunkId
    relation: str
    description: str
    weight: float
    hops: int


@dataclass(frozen=True)
class ScoredChunk(HitViews):
    """A hit: the fields of its chunk, the last score of each kind, and `scores`, the history of all."""

    id: ChunkId
    document_id: str = ""
    text: str = ""
    corpus_type: str = ""
    source_uri: str = ""
    document_title: str = ""
    document_source: str = ""
    parent_id: ChunkId | None = None
    level: Level = "chunk"
    repo_name: str | None = None
    file_path: str | None = None
    language: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    symbol_name: str | None = None
    symbol_kind: str | None = None
    qualified_name: str | None = None
    signature: str | None = None
    summary: str | None = None
    section_path: str | None = None
    section_type: str | None = None
    page: int | None = None
    service_name: str | None = None
    author: str | None = None
    timestamp: str | None = None  # ISO 8601 with offset; `created_at` is the datetime
    channel: str | None = None
    thread_id: str | None = None
    calls_out: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    connection_count: int = 0
    content_hash: str = ""
    context_prefix: str = ""
    meta: tuple[tuple[str, str], ...] = ()
    defines: tuple[Defined, ...] = ()
    dense_score: float | None = None  # cosine
    bm25_code_score: float | None = None
    bm25_nlp_score: float | None = None
    rrf_score: float | None = None  # raw Σ w/(k + rank)
    fusion_score: float | None = None  # in [0,1]
    rerank_score: float | None = None  # in [0,1]
    final_score: float = 0.0
    confidence: float | None = None
    stale: bool | None = None  # the file changed since it was indexed; None: unknown
    scores: tuple[Score, ...] = field(default_factory=tuple)  # no class attribute, so that __getattr__ is called
    parents: tuple[ParentContext, ...] = ()
    graph_context: tuple[EdgeContext, ...] = ()
    child_id: ChunkId | None = None  # the chunk that was found, if this is its parent
    child_lines: tuple[int, int] | None = None  # its first and last line
    copies: tuple[str, ...] = ()  # places of identical passages, as source/path:line

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # `query/result.py` sets `_explain` and no `scores`: they take a tenth of a query, and few are read.
            explain = vars(self).get("_explain")
            if name != "scores" or explain is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return vars(self).setdefault("scores", explain())

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone, with `scores`: a copied or pickled hit holds no part of its query."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


AnyChunk = Chunk | ScoredChunk  # both have the fields of a chunk


@dataclass(frozen=True)
class ServiceContext:
    """Neighbourhood of a service."""

    service_name: str
    calls: tuple[str, ...] = ()
    called_by: tuple[str, ...] = ()
    edges: tuple[dict[str, str], ...] = ()  # source, target, type, description, evidence


@dataclass(frozen=True)
class DocumentGroup:
    """A document among the hits, with its best passages."""

    document: str  # as source/path
    chunks: tuple[ScoredChunk, ...]  # best first; the first one is in `QueryResult.chunks`


@dataclass(frozen=True)
class QueryResult:
    """Result of a query: hits, notes and timings."""

    query: str
    chunks: tuple[ScoredChunk, ...] = ()
    groups: tuple[DocumentGroup, ...] = ()  # one for each of `chunks`, if the request groups by document
    query_type: str | None = None
    answer_style: str | None = None  # concise, detailed, structured or direct, by query type
    nothing_found: bool = False
    confidence: float | None = None
    degraded: tuple[Degradation, ...] = ()
    expanded_queries: tuple[str, ...] = ()
    metadata_answer: str | None = None
    service_context: dict[str, ServiceContext] | None = None  # by service; frozen, as the edges in it
    query_metadata: QueryMetadata = field(default_factory=QueryMetadata)

    @property
    def results(self) -> tuple[ScoredChunk, ...]:
        """The hits, under the name of other systems."""
        return self.chunks
