"""The chunks of an answer enter, as the wire format has them; groups by document with lines, links and ways leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dowse.serve.page.address import document_address
from dowse.serve.page.lines import Passage, Reader
from dowse.serve.page.why import Way, tops, way
from dowse.serve.plain_text import clean_line, clean_path

Row = Mapping[str, Any]

KINDS: Mapping[str, str] = {
    "CODE": "all code",
    "DOC": "all docs",
    "CONVO": "all talk",
    "CODE_LOGIC": "code",
    "CODE_DEPLOY": "deploy",
    "CODE_CONFIG": "config",
    "DOC_README": "readme",
    "DOC_RUNBOOK": "runbook",
    "DOC_ADR": "decision",
    "DOC_PAPER": "paper",
    "DOC_PAGE": "page",
    "CONVO_SLACK": "chat",
    "CONVO_TRANSCRIPT": "transcript",
    "CONVO_OTHER": "talk",
}


@dataclass(frozen=True)
class Editor:
    """Where files lie, if that may be told, and how an editor on the reader's machine is asked to open one."""

    template: str = ""
    roots: Mapping[str, str] | None = None

    def link(self, source: str, path: str | None, line: int | None) -> str:
        """Empty when there is none."""
        root = (self.roots or {}).get(source)
        if not self.template or not root or not path:
            return ""
        place = quote(f"{root.rstrip('/')}/{path}", safe="/", errors="surrogateescape")
        return self.template.replace("{path}", place).replace("{line}", str(line or 1))


@dataclass(frozen=True)
class Hit:
    """A passage that was found."""

    id: str
    rank: int
    place: str  # path:line, to be copied
    lines: str  # "12–40" or "page 3"
    heading: str
    href: str
    editor: str
    score: float
    chance: str  # how sure, in per cent
    stale: bool
    passage: Passage
    way: Way
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """A document, with its hits in the order of the ranking."""

    title: str
    uri: str
    href: str
    kind: str
    is_code: bool
    facts: tuple[str, ...]
    hits: tuple[Hit, ...]


def groups(rows: Sequence[Row], query: str, editor: Editor, first_rank: int = 1) -> tuple[Group, ...]:
    """Documents in the order of their best hits."""
    reader, top = Reader.of(query), tops(rows)
    found: dict[str, list[tuple[Row, Hit]]] = {}
    for rank, row in enumerate(rows, start=first_rank):
        found.setdefault(row["document_id"], []).append((row, _hit(row, rank, query, reader, editor, top)))
    return tuple(_group(members) for members in found.values())


def _group(members: Sequence[tuple[Row, Hit]]) -> Group:
    row = members[0][0]
    day = (row["timestamp"] or "")[:10]
    facts = (row["language"], row["service_name"], row["channel"] and f"#{row['channel']}", row["author"], day)
    return Group(
        title=clean_line(row["document_title"]) or clean_path(row["source_uri"].rpartition("/")[2]),
        uri=clean_path(row["source_uri"]),
        href=document_address(row["source_uri"]),
        kind=KINDS.get(row["corpus_type"], row["corpus_type"]),
        is_code=row["corpus_type"].startswith("CODE"),
        facts=tuple(clean_line(fact) for fact in facts if fact),
        hits=tuple(hit for _, hit in members),
    )


def _hit(row: Row, rank: int, query: str, reader: Reader, editor: Editor, top: Mapping[str, float]) -> Hit:
    first, last = row["start_line"], row["end_line"]
    sure = row["confidence"]
    return Hit(
        id=row["id"],
        rank=rank,
        place=clean_path(row["source_uri"]) + (f":{first}" if first else ""),
        lines=_lines(row),
        heading=_heading(row),
        href=document_address(row["source_uri"], query, (first, last or first) if first else None),
        editor=editor.link(row["document_source"], row["file_path"], first),
        score=row["final_score"],
        chance="" if sure is None else f"{sure:.0%}",
        stale=bool(row["stale"]),
        passage=reader.passage(row["text"], first),
        way=way(row["scores"], top),
        notes=tuple(clean_line(each["description"]) for each in row["graph_context"]),
    )


def _heading(row: Row) -> str:
    """The symbol, or the path of headings; without the first of them where it only repeats the title."""
    parts = [clean_line(part.lstrip("# ")) for part in (row["section_path"] or "").split(" > ") if part.strip("# ")]
    if len(parts) > 1 and parts[0].lstrip("0123456789. ") == clean_line(row["document_title"]):
        parts = parts[1:]
    return clean_line(row["qualified_name"] or row["symbol_name"] or " › ".join(parts) or row["section_type"] or "")


def _lines(row: Row) -> str:
    if row["start_line"]:
        first, last = row["start_line"], row["end_line"] or row["start_line"]
        return f"line {first}" if first == last else f"lines {first}–{last}"
    return f"page {row['page']}" if row["page"] else ""
