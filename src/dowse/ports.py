"""The shapes that parts meet at: small Protocols, so an implementation is one file and its contract test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dowse.filters import Filter
from dowse.fusion_kernel import Tables
from dowse.types import (
    Chunk,
    ChunkId,
    Document,
    DocumentInfo,
    Edge,
    Leg,
    Name,
    Role,
    ScoredChunk,
    Service,
    ServiceEdge,
    ServiceFact,
    Source,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.uint64]  # a ChunkId read as one number: int(id, 16)
    Values = NDArray[np.float64]
    Vector = NDArray[np.float32]  # unit length
    Matrix = NDArray[np.float32]  # one unit vector a row
    Mask = NDArray[np.bool_]
    Slots = NDArray[np.int64]
else:
    Ids = Values = Vector = Matrix = Mask = Slots = Any


@dataclass(frozen=True)
class SourceFile:
    """A file as it was read."""

    source: str  # the source's name
    path: str  # inside the source, with forward slashes
    data: bytes
    modified_ns: int
    language: str | None = None  # as the user's own rules say; None: the reader's table decides
    corpus_type: str | None = None  # likewise
    full_path: str = ""  # where it lies on this machine, for a reader that must look beside it; empty: nowhere

    @property
    def uri(self) -> str:
        return f"{self.source}/{self.path}"


class Reader(Protocol):
    """Bytes become a document with chunks. Raises BadRequestError with a reason when it cannot."""

    @property
    def name(self) -> str: ...

    def read(self, file: SourceFile) -> Document: ...


@dataclass(frozen=True)
class Progress:
    """How far a long job is."""

    phase: str  # "read" (files) or "embed" (chunks)
    done: int
    total: int | None
    note: str = ""


Reporter = Callable[[Progress], None]


@dataclass(frozen=True)
class Found:
    """What a leg found, best first."""

    ids: Ids
    scores: Values
    slots: Slots | None = None  # where the reader that found them has them; only it can use this, to look up less
    settled: bool = False  # exact scores give this very order, with ids for equals: fusion need not look again


@dataclass(frozen=True)
class Bm25:
    """The constants of a word leg."""

    k1: float = 1.2  # how soon a repeated term adds no more; measured: prose .510, against .511 at 1.5
    b: float = 0.75  # how much a long chunk is discounted; measured: .493 at k1 .9, b .4


STANDARD = Bm25()


@dataclass(frozen=True)
class Pending:
    """A text that still needs a vector."""

    content_hash: str
    text: str


@dataclass(frozen=True)
class StoreStats:
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
        ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        """One unit vector a text, in order; a vector does not depend on its neighbours in the call."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A chunk in the running."""

    chunk: Chunk
    value: float  # in [0,1]: the last stage's word

    def __init__(self, chunk: Chunk, value: float) -> None:
        """By hand, as that of `dowse.types.Score`: a reranker gets fifty."""
        own = self.__dict__
        own["chunk"], own["value"] = chunk, value


class Reranker(Protocol):
    """Candidates are judged against a question, more closely than a search can."""

    @property
    def model(self) -> str:
        """Names the judgement: two rerankers with one name must agree, for scores are kept by it."""
        ...

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        """One number in [0,1] a candidate, in order; None where it was not judged, for lack of time or of an answer.

        Raises UnavailableError when it cannot judge at all.
        """
        ...


class LLM(Protocol):
    """A language model that answers in JSON."""

    @property
    def model(self) -> str: ...

    def complete_json(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, *, max_tokens: int) -> Any:
        """The first JSON value of the reply, which the schema asks for and nothing guarantees: check its shape.

        Free of NaN. UnavailableError when there is none after `timeout_s`, all tries together.
        """
        ...


class Retriever(Protocol):
    """A question becomes hits. What builds on search depends on this alone; an Engine is one."""

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        """At most `top_k` hits, best first, with `final_score` in [0,1]."""
        ...


class StoreReader(Protocol):
    """One consistent moment of a store. Legs give ids and scores; text is fetched once, after fusion.

    Where `slots` can be given, they are those of `Found`, parallel to the ids: nothing changes but the time it takes.
    """

    @property
    def stats(self) -> StoreStats: ...

    @property
    def tables(self) -> Tables | None:
        """None where nothing is compiled."""
        ...

    def with_bm25(self, constants: Bm25) -> StoreReader:
        """The same moment, its words scored with other constants."""
        ...

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        """The best k chunks by BM25 that pass the filter and hold at least one term."""
        ...

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        """The best k chunks by cosine that pass the filter and have a vector."""
        ...

    def score_words(
        self, terms: Mapping[Leg, Sequence[str]], ids: Ids, slots: Slots | None = None
    ) -> Mapping[Leg, Values]:
        """Exact BM25 of any chunks, in every leg asked for; 0 where no term occurs."""
        ...

    def score_vectors(self, vector: Vector, ids: Ids, slots: Slots | None = None) -> Values:
        """Cosine of any chunks, exact up to how a vector is kept; NaN where there is no vector yet."""
        ...

    def vectors(self, ids: Ids, slots: Slots | None = None) -> tuple[Matrix, Mask]:
        """Stored vectors, one row an id, and which of the rows exist (the others are zero).

        A store may keep 16 bits of a value.
        """
        ...

    def get(self, ids: Collection[ChunkId], slots: Slots | None = None) -> Mapping[ChunkId, Chunk]:
        """Chunks of any level by id; ids that do not exist are left out."""
        ...

    def neighbours(self, ids: Collection[ChunkId], *, incoming: bool = False) -> Sequence[Edge]:
        """Edges that leave (or, with incoming, enter) the chunks, sorted by weight down, then ids."""
        ...

    def passing(self, ids: Ids, where: Filter, slots: Slots | None = None) -> Mask:
        """Which of the chunks are alive, searchable and pass the filter."""
        ...

    def embedded(self, where: Filter) -> int:
        """How many of the chunks that pass the filter have a vector."""
        ...

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        """By chunk and leg, which of the terms it holds, each once, in the order given. An unknown chunk holds none."""
        ...

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        """The BM25 that a chunk full of all these terms would come near, in every leg asked for.

        Terms that no chunk holds count too, so that a question in unknown words attains little of it.
        """
        ...

    def named(self, kind: str, names: Collection[str]) -> Sequence[Name]:
        """Who bears these names, the case of ASCII letters aside; by name, then chunk."""
        ...

    def names_from(self, kind: str, prefix: str, limit: int) -> Sequence[Name]:
        """The first names that start so, the case of ASCII letters aside; by name, then chunk."""
        ...

    def services(self) -> Sequence[Service]:
        """All nodes of the service graph, by name."""
        ...

    def service_edges(self) -> Sequence[ServiceEdge]:
        """All edges of the service graph, by source, target and type."""
        ...

    def document(self, document_id: str) -> DocumentInfo | None: ...

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        """Those that exist, each once."""
        ...

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        """All chunks of a document, of every level, in the order they were given."""
        ...


class StoreWriter(Protocol):
    """The one writer. What `put` and `remove` return from is durable; what `publish` returns from is searchable."""

    def add_source(self, source: Source) -> None:
        """Remember a source; one with the same name is replaced."""
        ...

    def remove_source(self, name: str) -> None:
        """Forget a source that has no documents any more."""
        ...

    def put(self, documents: Sequence[Document]) -> None:
        """Add documents or replace those with the same id, all of them or none."""
        ...

    def remove(self, document_ids: Collection[str]) -> int:
        """Delete documents with their chunks and edges; the number that existed."""
        ...

    def put_services(self, services: Sequence[Service], edges: Sequence[ServiceEdge]) -> None:
        """Replace the whole service graph, durably; it is made anew from all documents, not piece by piece.

        An edge from a service to itself is dropped. Refuses an edge whose end is no service.
        """
        ...

    def service_facts(self) -> Sequence[ServiceFact] | None:
        """What all documents say of services; None when the graph was last put after they were."""
        ...

    def put_edges(self, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
        """By document, the edges that this maker finds from it, durably; its earlier ones go, those of others stay.

        Of two that say the same of the same chunks, the one that is there stays: the reader's, then the first maker's.
        Documents that are gone are passed over.
        """
        ...

    def unlinked(self, maker: str) -> Sequence[str]:
        """Documents that this maker has not linked since they changed, or since a chunk they were tied to went."""
        ...

    def renamed(self) -> Sequence[tuple[str, str]]:
        """Kind and name of every name that came or went since the last `relink`, sorted."""
        ...

    def relink(self, maker: str, document_ids: Collection[str]) -> None:
        """Let these documents be linked again by this maker, too; the renamed names are seen to."""
        ...

    def publish(self) -> None: ...

    def use_model(self, name: str, dimension: int) -> None:
        """Say which model the vectors come from. Refuses another one than the index has (ModelMismatchError)."""
        ...

    def pending(self, limit: int) -> Sequence[Pending]:
        """Texts of published chunks that have no vector yet, each once, in order; cached vectors are put to use."""
        ...

    def pending_count(self) -> int:
        """How many published chunks have no vector yet."""
        ...

    def put_vectors(self, content_hashes: Sequence[str], vectors: Matrix) -> None:
        """Keep vectors, durably and searchable. Refuses a wrong dimension, NaN and zero length."""
        ...

    def compact(self) -> None:
        """Rebuild what is derived, without the dead."""
        ...

    def close(self) -> None:
        """Publish what is left and let the next writer in."""
        ...


class Store(Protocol):
    """A place where chunks are kept and found again."""

    def reader(self) -> StoreReader:
        """The newest published moment."""
        ...

    def writer(self, *, wait_s: float = 0.0) -> StoreWriter:
        """The writer; BusyError when another process has it and does not let go in time."""
        ...

    def sources(self) -> Sequence[Source]: ...

    def documents(self, source: str | None = None, under: str = "") -> Iterable[DocumentInfo]:
        """All, or those of a source, or of it those at a path, in that folder or in that archive."""
        ...

    def paths(self, source: str) -> Sequence[str]:
        """Of all documents of a source; cheaper than the documents."""
        ...

    def fact(self, key: str) -> str | None:
        """A small thing that was to be remembered and is not about a document."""
        ...

    def set_fact(self, key: str, value: str) -> None: ...

    def close(self) -> None: ...
