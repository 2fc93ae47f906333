"""Dowse: one search over everything an engineering team has written. Public names only, imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.adapters.openai_tool import KnowledgeTool as KnowledgeTool
    from dowse.config import Config as Config
    from dowse.engine import Engine as Engine
    from dowse.engine import open as open
    from dowse.filters import Filter as Filter
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

_HOME = {
    "BM25Index": "dowse.query.bm25_index",
    "Candidate": "dowse.ports",
    "Chunk": "dowse.types",
    "Config": "dowse.config",
    "CorpusType": "dowse.types",
    "CrossEncoderReranker": "dowse.models.cross_encoder",
    "Degradation": "dowse.types",
    "Document": "dowse.types",
    "Edge": "dowse.types",
    "EdgeContext": "dowse.types",
    "Embedder": "dowse.ports",
    "Engine": "dowse.engine",
    "Event": "dowse.query.stream",
    "Filter": "dowse.filters",
    "GraphOptions": "dowse.query.stages.graph",
    "GraphRetriever": "dowse.query.retrievers",
    "HeuristicReranker": "dowse.query.stages.rerank_heuristic",
    "HybridRetriever": "dowse.query.retrievers",
    "IndexReport": "dowse.reports",
    "KnowledgeTool": "dowse.adapters.openai_tool",
    "LLM": "dowse.ports",
    "LLMReranker": "dowse.query.stages.rerank_llm",
    "MemoryStore": "dowse.store.memory",
    "NewDocument": "dowse.ingest.documents",
    "ParentContext": "dowse.types",
    "Piece": "dowse.ingest.readers.plugin",
    "QueryMetadata": "dowse.reports",
    "QueryProcessor": "dowse.query.retrievers",
    "QueryRequest": "dowse.types",
    "QueryResult": "dowse.types",
    "QueryType": "dowse.types",
    "Reranker": "dowse.ports",
    "RetrievalPipeline": "dowse.query.retrievers",
    "Retriever": "dowse.ports",
    "Score": "dowse.types",
    "ScoreReranker": "dowse.query.stages.rerank",
    "ScoredChunk": "dowse.types",
    "SearchLeg": "dowse.ports",
    "ServiceContext": "dowse.types",
    "Source": "dowse.types",
    "apply_mmr": "dowse.query.stages.mmr",
    "build_document": "dowse.ingest.readers.plugin",
    "by_author": "dowse.filters",
    "by_channel": "dowse.filters",
    "by_corpus": "dowse.filters",
    "by_document": "dowse.filters",
    "by_language": "dowse.filters",
    "by_meta": "dowse.filters",
    "by_path": "dowse.filters",
    "by_repo": "dowse.filters",
    "by_section_type": "dowse.filters",
    "by_service": "dowse.filters",
    "by_source": "dowse.filters",
    "created_after": "dowse.filters",
    "created_before": "dowse.filters",
    "exclude_document": "dowse.filters",
    "open": "dowse.engine",
    "reciprocal_rank_fusion": "dowse.query.stages.fusion",
}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dowse' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
