"""What the MCP tools take: frozen values whose schemas agents are shown, small because every session pays for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from dowse.serve.mcp.token_paging import DEFAULT_TOKENS, MOST_TOKENS

MOST_HITS = 30  # three times that are the 100 candidates a leg brings anyway, so every page has one and the same order
DEFAULT_HITS = 8  # lab/ecosystem.md section 3
SMALLEST_TOKENS = 400  # chosen: less holds no answer worth reading

Cursor = Annotated[str, Meta(description="Of the answer before.")]
Budget = Annotated[int, Meta(description="Longest answer.", ge=SMALLEST_TOKENS, le=MOST_TOKENS)]


@dataclass(frozen=True, kw_only=True)
class Paged:
    """What every call may add to say how much to show; a tool's own arguments come first (`mcp_schema.ordered`)."""

    budget_tokens: Budget = DEFAULT_TOKENS
    cursor: Cursor = ""


@dataclass(frozen=True)
class Search(Paged):
    query: Annotated[str, Meta(description="A question in plain words, or names as in code.", min_length=1)]
    limit: Annotated[int, Meta(description="Hits at once.", ge=1, le=MOST_HITS)] = DEFAULT_HITS
    corpus: Annotated[str, Meta(description="CODE, DOC or CONVO, or in full such as CODE_DEPLOY.")] = ""
    path: Annotated[str, Meta(description="Glob: '*.py', 'docs/**'.")] = ""
    repo: str = ""
    language: Annotated[str, Meta(description="Such as python, go, markdown.")] = ""
    service: str = ""
    source: Annotated[str, Meta(description="A source's name; index_status lists them.")] = ""
    detail: Annotated[
        Literal["concise", "full"], Meta(description="full: whole chunks instead of their best lines.")
    ] = "concise"


@dataclass(frozen=True)
class Read(Paged):
    target: Annotated[str, Meta(description="A path, PATH:LINE, PATH:FIRST-LAST, or the id of a chunk.", min_length=1)]
    start_line: Annotated[int, Meta(description="From 1.", ge=0)] = 0
    end_line: Annotated[int, Meta(description="Inclusive.", ge=0)] = 0


@dataclass(frozen=True)
class FindSymbol(Paged):
    name: Annotated[str, Meta(description="retry, BookingStore.create; case does not count.", min_length=1)]
    kind: Annotated[str, Meta(description="Such as function, class, method, Deployment.")] = ""
    include_body: Annotated[bool, Meta(description="The text, too.")] = False


@dataclass(frozen=True)
class FindReferences(Paged):
    symbol: Annotated[str, Meta(description="A name, or CLASS.NAME.", min_length=1)]
    path: Annotated[str, Meta(description="Glob: only in these files.")] = ""
    definitions: Annotated[bool, Meta(description="Where it is defined, too.")] = False


@dataclass(frozen=True)
class Outline(Paged):
    path: Annotated[str, Meta(description="A file or folder.", min_length=1)]
    depth: Annotated[int, Meta(description="How deep to go.", ge=1, le=6)] = 2


@dataclass(frozen=True)
class Related(Paged):
    target: Annotated[str, Meta(description="A chunk's id, PATH:LINE, a path or a symbol.", min_length=1)]
    relation: Annotated[str, Meta(description="Only this one, such as calls, imports, documents, mentions.")] = ""


@dataclass(frozen=True)
class Services(Paged):
    name: Annotated[str, Meta(description="One service, with who calls it and whom it calls; else all.")] = ""


@dataclass(frozen=True)
class IndexStatus(Paged):
    pass


@dataclass(frozen=True)
class Reindex:
    path: Annotated[str, Meta(description="A folder or file that is indexed; else all sources.")] = ""
