"""The values that travel through the house: frozen, little behaviour, plain enough to hash, pickle and show as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Literal

from dowse.filters import Filter

ChunkId = str
"""16 hexadecimal digits: a 64-bit hash of source, level, text and occurrence, so it survives lines moving above it."""

Leg = Literal["dense", "bm25_code", "bm25_nlp"]
LEGS: tuple[Leg, ...] = ("dense", "bm25_code", "bm25_nlp")
Role = Literal["query", "chunk"]
Level = Literal["document", "section", "chunk"]


class CorpusType(StrEnum):
    """What kind of writing a chunk is. The part before the underscore is its family: CODE, DOC or CONVO."""

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


# --- what is kept -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defined:
    """A name that a chunk gives a meaning to: a function, a class, a constant."""

    name: str
    kind: str
    qualified_name: str  # parts joined by dots in every language
    start_line: int  # where the name stands, from 1: comments and decorators above it do not count
    end_line: int  # inclusive; may lie beyond the chunk


@dataclass(frozen=True)
class Chunk:
    """A passage that can be found. Only chunks of level "chunk" are searched; the others are their parents."""

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
    content_hash: str = ""  # of what is embedded: context_prefix, newline, text
    context_prefix: str = ""
    meta: tuple[tuple[str, str], ...] = ()  # for the user's own filters; nothing structural lives here
    defines: tuple[Defined, ...] = ()  # in the order of the lines; in code, each name is defined by one chunk


@dataclass(frozen=True)
class Edge:
    """A directed link between two chunks."""

    source_id: ChunkId
    target_id: ChunkId
    relation: str
    weight: float = 1.0
    description: str = ""


@dataclass(frozen=True)
class Name:
    """What a chunk is known by, so that other documents can speak of it."""

    kind: str  # symbol, file, module or thread
    name: str
    chunk_id: ChunkId
    document_id: str


@dataclass(frozen=True)
class Service:
    """A node of the service graph."""

    name: str
    repo_name: str | None = None
    language: str | None = None
    namespace: str | None = None
    ports: tuple[int, ...] = ()
    chunk_ids: tuple[ChunkId, ...] = ()  # where it is declared
    external: bool = False  # known only because others call it


@dataclass(frozen=True)
class ServiceEdge:
    """One service uses another. Both ends are names of services."""

    source: str
    target: str
    type: str = "unknown"  # http, grpc, queue, db …
    evidence: tuple[ChunkId, ...] = ()  # chunks that show it
    description: str = ""


@dataclass(frozen=True)
class ServiceFact:
    """What a chunk says of a service. The service graph is made from all of them (ingest/services/graph.py)."""

    kind: str  # declares, alias, port, sets, takes, reads, offers, stub, calls
    service: str = ""  # whom it is about; "" until the place of its file tells
    name: str = ""  # a variable, another name, a set of settings, a gRPC service
    value: str = ""  # an address, a port
    type: str = ""  # http, grpc, queue, db; "" where the chunk does not show it
    chunk_id: ChunkId = ""
    place: str = ""  # file and line
    repo: str = ""
    namespace: str = ""
    language: str = ""


@dataclass(frozen=True)
class Document:
    """One file, thread set or paper, with all it was cut into. It is stored wholly or not at all."""

    id: str
    source: str  # name of the Source it belongs to
    path: str  # inside the source, with forward slashes
    title: str
    content_hash: str  # of the bytes as read: tells whether the file changed
    chunks: tuple[Chunk, ...]
    edges: tuple[Edge, ...] = ()
    size_bytes: int = 0
    modified_ns: int = 0
    meta: tuple[tuple[str, str], ...] = ()
    facts: tuple[ServiceFact, ...] = ()


@dataclass(frozen=True)
class DocumentInfo:
    """What the store remembers of a document, without its chunks."""

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


@dataclass(frozen=True)
class Source:
    """A folder or file that was asked to be indexed. Its name prefixes every source_uri below it."""

    name: str
    root: str  # absolute path on this machine


class QueryType(StrEnum):
    """What a question wants; decides parameters in the `papers` profile and the style of an answer."""

    FACTUAL = "factual"
    CONCEPTUAL = "conceptual"
    COMPARISON = "comparison"
    METADATA = "metadata"


Fusion = Literal["z", "rrf", "minmax"]
ParentMode = Literal["off", "replace", "attach"]


@dataclass(frozen=True)
class QueryRequest:
    """A question and how to answer it. None means: what the profile says."""

    text: str
    top_k: int | None = None
    profile: str = "default"
    corpus_filter: tuple[str, ...] = ()
    service_filter: tuple[str, ...] = ()
    repo_filter: tuple[str, ...] = ()
    document_filter: tuple[str, ...] = ()
    source_filter: tuple[str, ...] = ()
    language_filter: tuple[str, ...] = ()
    path_filter: tuple[str, ...] = ()  # globs; a chunk passes when any of them matches
    section_filter: tuple[str, ...] = ()
    channel_filter: tuple[str, ...] = ()
    author_filter: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    meta_filter: tuple[tuple[str, str], ...] = ()
    where: Filter = ()  # further clauses, ANDed with the filters above
    legs: tuple[Leg, ...] = LEGS
    fusion: Fusion | None = None
    alpha: float | None = None  # weight of the dense leg; the two word legs share 1 − alpha
    weights: tuple[tuple[Leg, float], ...] | None = None  # by leg; excludes alpha
    k: int | None = None  # RRF's rank constant
    missing_rank: int | None = None  # RRF: the rank a leg gives to what it did not find; None adds nothing
    depth: int | None = None  # how many candidates each leg brings
    query_type: QueryType | None = None  # else the rules, or a configured LLM, tell
    expand: bool | None = None  # ask in other words, too; needs an LLM
    rerank: bool | str | None = None  # False, True (the profile's chain), or names joined by commas
    rerank_weight: float | None = None  # of the reranker's word; what came before it has the rest
    freshness_half_life_days: float | None = None
    freshness_weight: float | None = None  # 0 turns it off
    boost: bool | None = None  # of the kinds of writing that the question's words ask for
    parents: ParentMode | None = None
    min_score: float | None = None  # on final_score, in [0,1]
    min_similarity: float | None = None  # on the cosine of what no word leg found
    mmr: bool | None = None  # hits that differ from each other
    diversity: float | None = None  # how much MMR takes off for likeness
    graph: bool | None = None  # neighbours in the chunk graph join the pool
    graph_hops: int | None = None
    graph_weight: float | None = None  # of the way through the graph; the cosine has the rest
    graph_relations: tuple[str, ...] = ()  # only these; empty: all
    graph_min_weight: float | None = None  # weaker edges are not followed
    graph_bidirectional: bool | None = None  # follow edges backwards, too
    graph_slots: int | None = None  # places among the hits that are kept for what the graph found
    expand_graph: bool | None = None  # the services around the hits, as service_context
    explain: bool = False
    cache: bool = True
    deadline_s: float | None = None
    strict: bool = False  # raise NoRecallError when every leg failed, instead of an empty result

    def __post_init__(self) -> None:
        """Lists become tuples and a single name a tuple of one, so that a request hashes and reads naturally."""
        own = vars(self)
        for name in _TUPLES:
            value = own[name]
            if type(value) is not tuple:
                own[name] = (value,) if isinstance(value, str) else tuple(value or ())


_TUPLES = (
    *(each.name for each in fields(QueryRequest) if each.name.endswith("_filter")),
    "where",
    "legs",
    "graph_relations",
)


# --- what is answered -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """What one stage gave one chunk."""

    stage: str
    value: float  # in that stage's own unit; never compared across stages
    rank: int  # from 1, within that stage's output; 0 when the stage scored but did not rank it
    why: str = ""

    def __init__(self, stage: str, value: float, rank: int, why: str = "") -> None:
        """By hand: what `frozen` writes takes three times as long, and a query makes a hundred and fifty of these."""
        own = self.__dict__
        own["stage"], own["value"], own["rank"], own["why"] = stage, value, rank, why


@dataclass(frozen=True)
class Degradation:
    """A stage that was skipped or answered in part, and why."""

    stage: str
    reason: str


@dataclass(frozen=True)
class ParentContext:
    """A section or document around a chunk."""

    id: ChunkId
    level: str
    text: str
    summary: str | None = None


@dataclass(frozen=True)
class EdgeContext:
    """How the chunk graph led to a chunk, in words."""

    from_id: ChunkId
    relation: str
    description: str
    weight: float
    hops: int


@dataclass(frozen=True)
class ScoredChunk(Chunk):
    """A chunk with what every stage gave it. The flat fields are each stage's last word; `scores` is the way."""

    dense_score: float | None = None  # cosine
    bm25_code_score: float | None = None
    bm25_nlp_score: float | None = None
    rrf_score: float | None = None  # raw Σ w/(k + rank)
    fusion_score: float | None = None  # in [0,1]
    rerank_score: float | None = None  # in [0,1]
    final_score: float = 0.0
    confidence: float | None = None
    stale: bool | None = None  # the file changed since it was indexed; None: not checked
    scores: tuple[Score, ...] = ()
    parents: tuple[ParentContext, ...] = ()
    graph_context: tuple[EdgeContext, ...] = ()
    child_id: ChunkId | None = None  # what was found, when this is its parent
    child_lines: tuple[int, int] | None = None  # the child's first and last line


class _History:
    """`scores` of a hit that has `_tell` instead: put into words when they are first read.

    That takes a tenth of a whole query, and most hits are read for their text.
    """

    def __get__(self, hit: ScoredChunk | None, owner: type[ScoredChunk] | None = None) -> tuple[Score, ...]:
        if hit is None:
            return ()
        own = vars(hit)  # `scores` themselves would have been found there
        told: tuple[Score, ...] = own["_tell"]()
        own["scores"] = told
        return told


ScoredChunk.scores = _History()  # type: ignore[assignment]


@dataclass(frozen=True)
class ServiceContext:
    """The neighbourhood of a service."""

    service_name: str
    calls: tuple[str, ...] = ()
    called_by: tuple[str, ...] = ()
    edges: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True)
class QueryMetadata:
    """Timings and counts of one query."""

    total_ms: float = 0.0
    stages: tuple[tuple[str, float], ...] = ()  # milliseconds by stage
    counts: tuple[tuple[str, int], ...] = ()  # what each stage brought
    embedding_coverage: float = 0.0  # share of the chunks that have a vector
    model: str | None = None
    fusion: str | None = None
    chunks: int = 0  # in the index


@dataclass(frozen=True)
class QueryResult:
    """The answer, and all there is to say about how it came about."""

    query: str
    chunks: tuple[ScoredChunk, ...] = ()
    query_type: str | None = None
    answer_style: str | None = None  # concise, detailed, structured or direct: what the query type asks of an answer
    nothing_found: bool = False
    confidence: float | None = None
    degraded: tuple[Degradation, ...] = ()
    expanded_queries: tuple[str, ...] = ()
    metadata_answer: str | None = None
    service_context: tuple[tuple[str, ServiceContext], ...] | None = None
    query_metadata: QueryMetadata = field(default_factory=QueryMetadata)
