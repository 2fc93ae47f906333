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

_NAMES = {
    "haystack": ("HaystackDocumentStore", "HaystackRetriever"),
    "langchain": ("LangChainEmbedder", "LangChainRetriever", "LangChainVectorStore", "from_langchain"),
    "llama_index": ("LlamaIndexRetriever", "from_llama_index"),
    "openai_tool": ("KnowledgeTool",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dowse.adapters' has no attribute {name!r}")
    module = _HOME[name]
    try:
        return getattr(import_module(f"dowse.adapters.{module}"), name)
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("dowse"):
            raise
        extra = module.replace("_", "-")
        raise MissingExtraError(f"{name} needs {err.name}; run in a checkout: pip install '.[{extra}]'") from err


def __dir__() -> list[str]:
    return __all__
