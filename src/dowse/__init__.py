"""Dowse: one search over everything an engineering team has written. Public names only, imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.adapters.openai_tool import KnowledgeTool as KnowledgeTool
    from dowse.config import Config as Config
    from dowse.engine import Engine as Engine
    from dowse.engine import open as open
    from dowse.filters import Filter as Filter
    from dowse.filters import any_of as any_of
    from dowse.filters import by_author as by_author
    from dowse.filters import by_channel as by_channel
    from dowse.filters import by_corpus as by_corpus
    from dowse.filters import by_document as by_document
    from dowse.filters import by_language as by_language
    from dowse.filters import by_meta as by_meta
    from dowse.filters import by_path as by_path
    from dowse.filters import by_repo as by_repo
    from dowse.filters import by_section_type as by_section_type
    from dowse.filters import by_service as by_service
    from dowse.filters import by_source as by_source
    from dowse.filters import created_after as created_after
    from dowse.filters import created_before as created_before
    from dowse.filters import exclude as exclude
    from dowse.filters import exclude_document as exclude_document
    from dowse.ingest.documents import NewDocument as NewDocument
    from dowse.ingest.readers.plugin import Piece as Piece
    from dowse.ingest.readers.plugin import build_document as build_document
    from dowse.models.cross_encoder import CrossEncoderReranker as CrossEncoderReranker
    from dowse.ports import LLM as LLM
    from dowse.ports import Candidate as Candidate
    from dowse.ports import Embedder as Embedder
    from dowse.ports import Reranker as Reranker
    from dowse.ports import Retriever as Retriever
    from dowse.ports import SearchLeg as SearchLeg
    from dowse.query.bm25_index import BM25Index as BM25Index
    from dowse.query.retrievers import GraphRetriever as GraphRetriever
    from dowse.query.retrievers import HybridRetriever as HybridRetriever
    from dowse.query.retrievers import QueryProcessor as QueryProcessor
    from dowse.query.retrievers import RetrievalPipeline as RetrievalPipeline
    from dowse.query.stages.fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
    from dowse.query.stages.graph import GraphOptions as GraphOptions
    from dowse.query.stages.mmr import apply_mmr as apply_mmr
    from dowse.query.stages.rerank import ScoreReranker as ScoreReranker
    from dowse.query.stages.rerank_heuristic import HeuristicReranker as HeuristicReranker
    from dowse.query.stages.rerank_llm import LLMReranker as LLMReranker
    from dowse.query.stream import Event as Event
    from dowse.reports import IndexReport as IndexReport
    from dowse.reports import QueryMetadata as QueryMetadata
    from dowse.store.memory import MemoryStore as MemoryStore
    from dowse.types import Chunk as Chunk
    from dowse.types import CorpusType as CorpusType
    from dowse.types import Degradation as Degradation
    from dowse.types import Document as Document
    from dowse.types import Edge as Edge
    from dowse.types import EdgeContext as EdgeContext
    from dowse.types import ParentContext as ParentContext
    from dowse.types import QueryRequest as QueryRequest
    from dowse.types import QueryResult as QueryResult
    from dowse.types import QueryType as QueryType
    from dowse.types import Score as Score
    from dowse.types import ScoredChunk as ScoredChunk
    from dowse.types import ServiceContext as ServiceContext
    from dowse.types import Source as Source

__version__ = "0.1.0"

_NAMES = {
    "dowse.adapters.openai_tool": "KnowledgeTool",
    "dowse.config": "Config",
    "dowse.engine": "Engine open",
    "dowse.filters": (
        "Filter any_of by_author by_channel by_corpus by_document by_language by_meta by_path by_repo "
        "by_section_type by_service by_source created_after created_before exclude exclude_document"
    ),
    "dowse.ingest.documents": "NewDocument",
    "dowse.ingest.readers.plugin": "Piece build_document",
    "dowse.models.cross_encoder": "CrossEncoderReranker",
    "dowse.ports": "Candidate Embedder LLM Reranker Retriever SearchLeg",
    "dowse.query.bm25_index": "BM25Index",
    "dowse.query.retrievers": "GraphRetriever HybridRetriever QueryProcessor RetrievalPipeline",
    "dowse.query.stages.fusion": "reciprocal_rank_fusion",
    "dowse.query.stages.graph": "GraphOptions",
    "dowse.query.stages.mmr": "apply_mmr",
    "dowse.query.stages.rerank": "ScoreReranker",
    "dowse.query.stages.rerank_heuristic": "HeuristicReranker",
    "dowse.query.stages.rerank_llm": "LLMReranker",
    "dowse.query.stream": "Event",
    "dowse.reports": "IndexReport QueryMetadata",
    "dowse.store.memory": "MemoryStore",
    "dowse.types": (
        "Chunk CorpusType Degradation Document Edge EdgeContext ParentContext QueryRequest QueryResult "
        "QueryType Score ScoredChunk ServiceContext Source"
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dowse' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
