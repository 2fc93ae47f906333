"""The table of the MCP tools: for each its name, what it is for, what it takes, what it gives and what runs it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dowse.serve.mcp import answers as gives
from dowse.serve.mcp import arguments as takes

if TYPE_CHECKING:
    from dowse.serve.backend import Backend


@dataclass(frozen=True)
class Tool:
    """What an agent may call."""

    name: str
    title: str
    description: str
    takes: type[Any]
    gives: type[Any]
    place: str  # module:function, imported by the first call: an agent waits for the list of tools, not for numpy
    writes: bool = False

    def run(self, backend: Backend, asked: object) -> object:
        module, function = self.place.split(":")
        return getattr(import_module(f"dowse.serve.mcp.{module}"), function)(backend, asked)


TOOLS: tuple[Tool, ...] = (
    Tool(
        "search",
        "Search",
        "Find code, docs, manifests and chat by meaning and by words, best first. Start here.",
        takes.Search,
        gives.SearchAnswer,
        "tools_search:search",
    ),
    Tool(
        "read",
        "Read lines",
        "Read lines of an indexed file, or one chunk, with line numbers.",
        takes.Read,
        gives.ReadAnswer,
        "tools_search:read",
    ),
    Tool(
        "find_symbol",
        "Find a definition",
        "Find where a function, class, method or resource of that name is defined.",
        takes.FindSymbol,
        gives.SymbolsAnswer,
        "tools_structure:find_symbol",
    ),
    Tool(
        "find_references",
        "Find references",
        "List every line that uses a name, by file.",
        takes.FindReferences,
        gives.ReferencesAnswer,
        "tools_services:find_references",
    ),
    Tool(
        "outline",
        "Outline",
        "Show the symbols or headings of a file, or what is in a folder.",
        takes.Outline,
        gives.OutlineAnswer,
        "tools_structure:outline",
    ),
    Tool(
        "related",
        "Related places",
        "Show what a place is tied to: callers, callees, docs, manifests, threads.",
        takes.Related,
        gives.RelatedAnswer,
        "tools_structure:related",
    ),
    Tool(
        "services",
        "Service map",
        "Show services and who calls whom; for one service also all that breaks with it.",
        takes.Services,
        gives.ServicesAnswer,
        "tools_services:services",
    ),
    Tool(
        "index_status",
        "Index status",
        "Say what is indexed, from where, how much of it is stale.",
        takes.IndexStatus,
        gives.StatusAnswer,
        "tools_services:index_status",
    ),
    Tool(
        "reindex",
        "Bring the index up to date",
        "Read again what changed in the indexed files.",
        takes.Reindex,
        gives.ReindexAnswer,
        "tools_services:reindex",
        writes=True,
    ),
)
