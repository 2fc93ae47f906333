"""Table of the MCP tools: name, description, arguments, answer and implementation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dowse.serve.mcp import answers as gives
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.answers import McpItem

if TYPE_CHECKING:
    from dowse.serve.backend import Backend


class Tool(Struct, frozen=True):
    """Tool of the MCP server."""

    name: str  # of its function, too
    title: str
    takes: type[Any]  # its docstring describes the tool
    gives: type[Any]
    module: str  # imported at the first call, so that listing the tools does not load numpy
    writes: bool = False

    @property
    def description(self) -> str:
        return self.takes.__doc__ or ""

    def run(self, backend: Backend, arguments: object) -> McpItem:
        module: Any = import_module(f"dowse.serve.mcp.{self.module}")
        answer: McpItem = getattr(module, self.name)(backend, arguments)
        return answer


TOOLS: tuple[Tool, ...] = (
    Tool("search", "Search", takes.SearchArguments, gives.SearchAnswer, "tools_search"),
    Tool("read", "Read lines", takes.ReadArguments, gives.ReadAnswer, "tools_search"),
    Tool("find_symbol", "Find a definition", takes.FindSymbolArguments, gives.SymbolsAnswer, "tools_structure"),
    Tool("find_references", "Find references", takes.FindReferencesArguments, gives.ReferencesAnswer, "tools_services"),
    Tool("outline", "Outline", takes.OutlineArguments, gives.OutlineAnswer, "tools_structure"),
    Tool("related", "Related places", takes.RelatedArguments, gives.RelatedAnswer, "tools_structure"),
    Tool("services", "Service map", takes.ServicesArguments, gives.ServicesAnswer, "tools_services"),
    Tool("index_status", "Index status", takes.IndexStatusArguments, gives.StatusAnswer, "tools_services"),
    Tool(
        "reindex",
        "Bring the index up to date",
        takes.ReindexArguments,
        gives.ReindexAnswer,
        "tools_services",
        writes=True,
    ),
)
