"""The shapes that parts meet at: small Protocols, so an implementation is one file and its contract test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dowse.filters import Filter
from dowse.link_names import Name
from dowse.types import (
    Chunk,
    ChunkId,
    CorpusType,
    Document,
    DocumentInfo,
    Edge,
    Leg,
    Role,
    ScoredChunk,
    Service,
    ServiceEdge,
    ServiceFact,
    Source,
)
from dowse.views import CandidateViews

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.uint64]  # a ChunkId read as one number: int(id, 16)
    Values = NDArray[np.float64]
    Vector = NDArray[np.float32]  # unit length
    Matrix = NDArray[np.float32]  # one unit vector a row
    Mask = NDArray[np.bool_]
    Ranks = NDArray[np.int64]
    Order = NDArray[np.intp]
    Table = NDArray[np.float64]  # a leg a row, a chunk a column
else:
    Ids = Values = Vector = Matrix = Mask = Ranks = Order = Table = Any


class FileKind(msgspec.Struct, frozen=True):
    """Reader of a file and the values its chunks get from its path."""

    reader: str
    language: str | None
    corpus_type: CorpusType
    known: bool = True  # False: no rule matches the name, so the bytes decide whether it is text
    own: bool = False  # a rule of the user's settings decided, in part or in whole


class SourceFile(msgspec.Struct, frozen=True):
    """A file as it was read."""

    source: str  # the source's name
    path: str  # inside the source, with forward slashes
    data: bytes
    modified_ns: int
    language: str | None = None  # as the user's own rules say; None: the reader's table decides
    corpus_type: str | None = None  # likewise
    full_path: str = ""  # path on this machine, for a reader that needs sibling files; empty: none
    kind: FileKind | None = None  # as classified by the pipeline; None: the reader classifies the path

    @property
    def uri(self) -> str:
        return f"{self.source}/{self.path}"


class Reader(Protocol):
    """Bytes become a document with chunks. Raises BadRequestError with a reason when it cannot."""

    @property
    def name(self) -> str: ...

    def read(self, file: SourceFile) -> Document: ...


class Progress(msgspec.Struct, frozen=True):
    """How far a long job is."""

    phase: str  # "read" (files) or "embed" (chunks)
    done: int
    total: int | None
    note: str = ""


Reporter = Callable[[Progress], None]


class Found(msgspec.Struct, frozen=True, eq=False):
    """What a leg found, best first."""

    ids: Ids
    scores: Values


class Bm25(msgspec.Struct, frozen=True):
    """The constants of a word leg."""

    k1: float = 1.2  # how soon a repeated term adds no more; measured: prose .510, against .511 at 1.5
    b: float = 0.75  # how much a long chunk is discounted; measured: .493 at k1 .9, b .4


STANDARD = Bm25()


class Pending(msgspec.Struct, frozen=True):
    """A text that still needs a vector."""

    content_hash: str
    text: str


class StoreStats(msgspec.Struct, frozen=True):
    """How much a store holds, at one moment."""

    documents: int
    chunks: int  # of level "chunk": what is searched
    vectors: int  # how many of those have one, for the model in use
    model: str | None = None
    dimension: int | None = None


class Embedder(Protocol):
    """Text becomes unit vectors."""

    @property
    def model(self) -> str:
        """The name written to the manifest; two embedders with one name must agree."""

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        """One unit vector a text, in order; a vector does not depend on its neighbours in the call."""


class Candidate(CandidateViews, msgspec.Struct, frozen=True):
    """A chunk in the running; of a reranked one, `value` is the new score."""

    chunk: Chunk
    value: float  # in [0,1]: the last stage's word
    original: float | None = None  # the value before it was reranked
    source: str = ""  # the stage that gave the original value


class SearchLeg(Protocol):
    """A further way to find chunks, beside or instead of those that Dowse has."""

    @property
    def name(self) -> str:
        """Names the leg in requests and scores; a name of `LEGS` replaces that leg."""

    def search(self, query: str, k: int, *, where: Filter = ()) -> Iterable[Any]:
        """The best k chunks: pairs of id and score, or results with both; higher is better."""


class Reranker(Protocol):
    """Candidates are judged against a question, more closely than a search can."""

    @property
    def model(self) -> str:
        """Names the judgement: two rerankers with one name must agree, for scores are kept by it."""

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        """One number in [0,1] a candidate, in order; None where it was not judged, for lack of time or of an answer.

        Raises UnavailableError when it cannot judge at all.
        """


class LLM(Protocol):
    """A language model that answers in JSON."""

    @property
    def model(self) -> str: ...

    def complete_json(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, *, max_tokens: int) -> Any:
        """The first JSON value of the reply, which the schema asks for and nothing guarantees: check its shape.

        Free of NaN. UnavailableError when there is none after `timeout_s`, all tries together.
        """


class Retriever(Protocol):
    """A question becomes hits. What builds on search depends on this alone; an Engine is one."""

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        """At most `top_k` hits, best first, with `final_score` in [0,1]."""


class ChunkReader(Protocol):
    """Chunks and documents of one snapshot: the one port that every store has."""

    @property
    def stats(self) -> StoreStats: ...

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        """Chunks of any level by id, without ids that do not exist."""

    def passing(self, ids: Ids, where: Filter) -> Mask:
        """Which of the chunks are alive, searchable and pass the filter."""

    def document(self, document_id: str) -> DocumentInfo | None: ...

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        """Those that exist, each once."""

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        """All chunks of a document, of every level, in the order they were given."""


class WordSearch(Protocol):
    """BM25 over the terms of the two word legs."""

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        """The best k chunks by BM25 that pass the filter and hold at least one term."""

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Mapping[Leg, Values]:
        """Exact BM25 of any chunks, in every leg given; 0 where no term occurs."""

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        """By chunk and leg, the terms it holds, each once, in the order given. An unknown chunk holds none."""

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        """The BM25 that a chunk full of all these terms would come near, in every leg given.

        Terms that no chunk holds count too, so that a query in unknown words attains little of it.
        """


class VectorSearch(Protocol):
    """Cosine over the vectors of the model in use."""

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        """The best k chunks by cosine that pass the filter and have a vector."""

    def score_vectors(self, vector: Vector, ids: Ids) -> Values:
        """Cosine of any chunks, exact up to the stored precision; NaN where there is no vector yet."""

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        """Stored vectors, one row an id, and which of the rows exist (the others are zero).

        A store may keep 16 bits of a value.
        """

    def embedded(self, where: Filter) -> int:
        """Number of chunks that pass the filter and have a vector."""


class ChunkGraph(Protocol):
    """Edges between chunks, and the names that chunks define."""

    def neighbours(self, ids: Collection[ChunkId], *, incoming: bool = False) -> Sequence[Edge]:
        """Edges that leave (or, with incoming, enter) the chunks, sorted by weight down, then ids."""

    def named(self, kind: str, names: Collection[str]) -> Sequence[Name]:
        """Chunks with these names, the case of ASCII letters aside; by name, then chunk."""

    def names_from(self, kind: str, prefix: str, limit: int) -> Sequence[Name]:
        """The first names with this prefix, the case of ASCII letters aside; by name, then chunk."""


class ServiceReader(Protocol):
    """The service graph."""

    def services(self) -> Sequence[Service]:
        """All nodes, by name."""

    def service_edges(self) -> Sequence[ServiceEdge]:
        """All edges, by source, target and type."""


class QuerySession(ChunkReader, WordSearch, VectorSearch, ChunkGraph, ServiceReader, Protocol):
    """All that one query reads. A store may keep in it what a search finds, for the scoring that follows."""


class StoreReader(QuerySession, Protocol):
    """One consistent snapshot of a store that has every port."""

    def session(self, constants: Bm25 = STANDARD) -> QuerySession:
        """A session for one query on this snapshot, with BM25 of these constants."""


class DocumentWriter(Protocol):
    """Sources and their documents. A change is durable when the call returns."""

    def add_source(self, source: Source) -> None:
        """Remember a source; one with the same name is replaced."""

    def remove_source(self, name: str) -> None:
        """Forget a source that has no documents any more."""

    def put(self, documents: Sequence[Document]) -> None:
        """Add documents or replace those with the same id, all of them or none."""

    def remove(self, document_ids: Collection[str]) -> int:
        """Delete documents with their chunks and edges; the number that existed."""


class VectorWriter(Protocol):
    """Vectors of the published chunks."""

    def use_model(self, name: str, dimension: int) -> None:
        """Set the model of the vectors. Refuses another one than the index has (ModelMismatchError)."""

    def pending(self, limit: int) -> Sequence[Pending]:
        """Texts of published chunks that have no vector yet, each once, in order; cached vectors are put to use."""

    def pending_count(self) -> int:
        """Number of published chunks that have no vector yet."""

    def put_vectors(self, content_hashes: Sequence[str], vectors: Matrix) -> None:
        """Keep vectors, durably and searchable. Refuses a wrong dimension, NaN and zero length."""


class LinkWriter(Protocol):
    """Edges between chunks, by the maker that found them."""

    def put_edges(self, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
        """Replace this maker's edges from each of these documents, durably; those of other makers stay.

        Of two equal edges, the earlier one stays: the reader's, then the first maker's. Deleted documents are ignored.
        """

    def unlinked(self, maker: str) -> Sequence[str]:
        """Documents that this maker has not linked since they, or a chunk they were linked to, changed."""

    def renamed(self) -> Sequence[tuple[str, str]]:
        """Kind and name of every name that came or went since the last `relink`, sorted."""

    def relink(self, maker: str, document_ids: Collection[str]) -> None:
        """Mark these documents as unlinked by this maker, and the renamed names as handled."""


class ServiceWriter(Protocol):
    """The service graph, which is rebuilt from all documents at once."""

    def put_services(self, services: Sequence[Service], edges: Sequence[ServiceEdge]) -> None:
        """Replace the whole service graph, durably.

        An edge from a service to itself is dropped. Refuses an edge whose end is no service.
        """

    def service_facts(self) -> Sequence[ServiceFact] | None:
        """Facts about services from all documents; None when the graph is newer than all of them."""


class StoreWriter(DocumentWriter, VectorWriter, LinkWriter, ServiceWriter, Protocol):
    """The one writer of a store. Documents are searchable when `publish` returns."""

    def publish(self) -> None: ...

    def compact(self) -> None:
        """Rebuild the derived parts, without deleted chunks."""

    def close(self) -> None:
        """Publish the rest and release the writer's lock."""


class SearchableStore(Protocol):
    """The least that a retriever needs of a store. Ports that its reader lacks degrade the query."""

    def reader(self) -> ChunkReader:
        """The newest published snapshot."""

    def documents(self, source: str | None = None, under: str = "") -> Iterable[DocumentInfo]:
        """All, or those of a source, or of it those at a path, in that folder or in that archive."""


class Store(SearchableStore, Protocol):
    """A complete store: chunks are kept in it and found again."""

    def reader(self) -> StoreReader:
        """The newest published snapshot."""

    def writer(self, *, wait_s: float = 0.0) -> StoreWriter:
        """The writer; BusyError when another process holds the lock for longer than `wait_s`."""

    def sources(self) -> Sequence[Source]: ...

    def paths(self, source: str) -> Sequence[str]:
        """Of all documents of a source; cheaper than the documents."""

    def fact(self, key: str) -> str | None:
        """A small value that is not about a document."""

    def set_fact(self, key: str, value: str) -> None: ...

    def close(self) -> None: ...
