"""Arguments of the MCP tools. The docstring of a class is the description of its tool that agents read.

Descriptions are short because they cost tokens in every session.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dowse.serve.mcp.token_paging import DEFAULT_TOKENS, MOST_TOKENS

MOST_HITS = 30  # a leg returns 100 candidates, so all pages up to here share one order
DEFAULT_HITS = 8  # chosen: fits the default budget with a few lines each
SMALLEST_TOKENS = 400  # chosen: a smaller answer is not useful

Cursor = Annotated[str, Meta(description="From the previous answer.")]
Budget = Annotated[int, Meta(description="Maximum length of the answer.", ge=SMALLEST_TOKENS, le=MOST_TOKENS)]


class PagedArguments(Struct, frozen=True, kw_only=True):
    """Arguments of every paged tool. Keyword-only, so the own arguments of a tool come first."""

    budget_tokens: Budget = DEFAULT_TOKENS
    cursor: Cursor = ""


class SearchArguments(PagedArguments, frozen=True):
    """Search code, docs, manifests and chat by meaning and keyword, best first. Start here."""

    query: Annotated[
        str,
        Meta(
            description='Question in plain words, or names from code. "exact phrase", -word and lang:go filter.',
            min_length=1,
        ),
    ]
    limit: Annotated[int, Meta(description="Results per page.", ge=1, le=MOST_HITS)] = DEFAULT_HITS
    corpus: Annotated[str, Meta(description="CODE, DOC, CONVO, or a kind such as CODE_DEPLOY.")] = ""
    path: Annotated[str, Meta(description="Glob: '*.py', 'docs/**'.")] = ""
    repo: str = ""
    language: Annotated[str, Meta(description="Such as python, go, markdown.")] = ""
    service: str = ""
    source: Annotated[str, Meta(description="Source name; index_status lists them.")] = ""
    detail: Annotated[Literal["concise", "full"], Meta(description="full: whole chunks, not just the best lines.")] = (
        "concise"
    )


class ReadArguments(PagedArguments, frozen=True):
    """Read lines of an indexed file, or one chunk, with line numbers."""

    target: Annotated[str, Meta(description="Path, PATH:LINE, PATH:FIRST-LAST, or chunk id.", min_length=1)]
    start_line: Annotated[int, Meta(description="From 1.", ge=0)] = 0
    end_line: Annotated[int, Meta(description="Inclusive.", ge=0)] = 0


class FindSymbolArguments(PagedArguments, frozen=True):
    """Find the definition of a function, class, method or resource."""

    name: Annotated[str, Meta(description="retry, BookingStore.create; case-insensitive.", min_length=1)]
    kind: Annotated[str, Meta(description="Such as function, class, method, Deployment.")] = ""
    include_body: Annotated[bool, Meta(description="Include the source text.")] = False


class FindReferencesArguments(PagedArguments, frozen=True):
    """List every line that uses a name, by file."""

    symbol: Annotated[str, Meta(description="Name or CLASS.NAME.", min_length=1)]
    path: Annotated[str, Meta(description="Glob: only in these files.")] = ""
    definitions: Annotated[bool, Meta(description="Include definitions.")] = False


class OutlineArguments(PagedArguments, frozen=True):
    """List the symbols or headings of a file or folder."""

    path: Annotated[str, Meta(description="File or folder.", min_length=1)]
    depth: Annotated[int, Meta(description="Nesting depth.", ge=1, le=6)] = 2


class RelatedArguments(PagedArguments, frozen=True):
    """List callers, callees, docs, manifests and threads linked to a symbol, file or line."""

    target: Annotated[str, Meta(description="Chunk id, PATH:LINE, path or symbol.", min_length=1)]
    relation: Annotated[str, Meta(description="Only this relation: calls, imports, documents, mentions …")] = ""


class ServicesArguments(PagedArguments, frozen=True):
    """List services and their calls; for one service also all that depend on it."""

    name: Annotated[str, Meta(description="One service with callers and callees; empty for all.")] = ""


class IndexStatusArguments(PagedArguments, frozen=True):
    """List indexed sources, with counts of documents, chunks and stale files."""


class ReindexArguments(Struct, frozen=True):
    """Update the index with changed files."""

    path: Annotated[str, Meta(description="Indexed folder or file; empty for all sources.")] = ""
