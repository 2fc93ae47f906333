"""Adapters: an Engine or Retriever enters, a retriever, store or tool of another framework leaves.

Imports the public API and the framework of each adapter, on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dowse.errors import MissingExtraError

if TYPE_CHECKING:
    from dowse.adapters.haystack import HaystackDocumentStore as HaystackDocumentStore
    from dowse.adapters.haystack import HaystackRetriever as HaystackRetriever
    from dowse.adapters.langchain import LangChainEmbedder as LangChainEmbedder
    from dowse.adapters.langchain import LangChainRetriever as LangChainRetriever
    from dowse.adapters.langchain import LangChainVectorStore as LangChainVectorStore
    from dowse.adapters.langchain import from_langchain as from_langchain
    from dowse.adapters.llama_index import LlamaIndexRetriever as LlamaIndexRetriever
    from dowse.adapters.llama_index import from_llama_index as from_llama_index
    from dowse.adapters.openai_tool import KnowledgeTool as KnowledgeTool

_HOME = {
    "HaystackDocumentStore": ("dowse.adapters.haystack", "haystack"),
    "HaystackRetriever": ("dowse.adapters.haystack", "haystack"),
    "KnowledgeTool": ("dowse.adapters.openai_tool", ""),
    "LangChainEmbedder": ("dowse.adapters.langchain", "langchain"),
    "LangChainRetriever": ("dowse.adapters.langchain", "langchain"),
    "LangChainVectorStore": ("dowse.adapters.langchain", "langchain"),
    "LlamaIndexRetriever": ("dowse.adapters.llama_index", "llama-index"),
    "from_langchain": ("dowse.adapters.langchain", "langchain"),
    "from_llama_index": ("dowse.adapters.llama_index", "llama-index"),
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dowse.adapters' has no attribute {name!r}")
    module, extra = _HOME[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("dowse"):
            raise
        raise MissingExtraError(f"{name} needs {err.name}; run: pip install 'dowse-search[{extra}]'") from err


def __dir__() -> list[str]:
    return __all__
