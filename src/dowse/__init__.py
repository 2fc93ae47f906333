"""Dowse: one search over everything an engineering team has written. Public names only, imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.adapters.openai_tool import KnowledgeTool as KnowledgeTool
    from dowse.engine import Engine as Engine
    from dowse.engine import open as open
    from dowse.models.cross_encoder import CrossEncoderReranker as CrossEncoderReranker
    from dowse.ports import Retriever as Retriever
    from dowse.query.retrievers import GraphRetriever as GraphRetriever
    from dowse.query.retrievers import HybridRetriever as HybridRetriever
    from dowse.query.retrievers import QueryProcessor as QueryProcessor
    from dowse.query.retrievers import RetrievalPipeline as RetrievalPipeline
    from dowse.query.stages.fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
    from dowse.query.stages.mmr import apply_mmr as apply_mmr
    from dowse.query.stages.rerank_heuristic import HeuristicReranker as HeuristicReranker
    from dowse.query.stages.rerank_llm import LLMReranker as LLMReranker
    from dowse.query.stages.rerank_score import ScoreReranker as ScoreReranker
    from dowse.reports import IndexReport as IndexReport
    from dowse.types import Chunk as Chunk
    from dowse.types import CorpusType as CorpusType
    from dowse.types import Document as Document
    from dowse.types import Edge as Edge
    from dowse.types import QueryRequest as QueryRequest
    from dowse.types import QueryResult as QueryResult
    from dowse.types import QueryType as QueryType
    from dowse.types import ScoredChunk as ScoredChunk
    from dowse.types import ServiceContext as ServiceContext
    from dowse.types import Source as Source

__version__ = "0.1.0"

_HOME = {
    "Chunk": "dowse.types",
    "CorpusType": "dowse.types",
    "CrossEncoderReranker": "dowse.models.cross_encoder",
    "Document": "dowse.types",
    "Edge": "dowse.types",
    "Engine": "dowse.engine",
    "GraphRetriever": "dowse.query.retrievers",
    "HeuristicReranker": "dowse.query.stages.rerank_heuristic",
    "HybridRetriever": "dowse.query.retrievers",
    "IndexReport": "dowse.reports",
    "KnowledgeTool": "dowse.adapters.openai_tool",
    "LLMReranker": "dowse.query.stages.rerank_llm",
    "QueryProcessor": "dowse.query.retrievers",
    "QueryRequest": "dowse.types",
    "QueryResult": "dowse.types",
    "QueryType": "dowse.types",
    "RetrievalPipeline": "dowse.query.retrievers",
    "Retriever": "dowse.ports",
    "ScoreReranker": "dowse.query.stages.rerank_score",
    "ScoredChunk": "dowse.types",
    "ServiceContext": "dowse.types",
    "Source": "dowse.types",
    "apply_mmr": "dowse.query.stages.mmr",
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
