"""Result list of the search page: hits grouped by document, with snippets, links and score traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from dowse.serve.best_line import Marker
from dowse.serve.page.address import chunk_address, document_address
from dowse.serve.page.why import Row, Values, score_trace, top_scores
from dowse.serve.plain_text import clean, clean_line, clean_path
from dowse.tokenizer import Tokenizer

SNIPPET_LINES = 6  # chosen: ten hits fit on two screens
LONGEST_LINE_CHARS = 600  # shown of a line; chosen: minified code has megabytes in one


Span = tuple[str, bool]  # part of a line, and whether it matches the query


class Highlighter(Struct, frozen=True):
    """Highlighter for the words of a query."""

    marker: Marker | None = None

    @classmethod
    def of(cls, query: str) -> Highlighter:
        return cls(Marker(query, Tokenizer()) if query.strip() else None)

    def snippet(self, text: str, first_number: int | None, symbol: str | None = None) -> Values:
        """Split a chunk into lines, and choose the few around the best one."""
        texts = clean(text).strip("\n").split("\n")
        skipped = len(text) - len(text.lstrip("\n"))
        first = None if first_number is None else first_number + skipped
        lines = tuple(self.line(each, None if first is None else first + offset) for offset, each in enumerate(texts))
        start = max(self.marker.best(texts, symbol) - 1, 0) if self.marker else 0
        start = max(min(start, len(lines) - SNIPPET_LINES), 0)
        best = lines[start : start + SNIPPET_LINES]
        return {"lines": lines, "best": best, "is_cut": len(best) < len(lines)}

    def line(self, text: str, number: int | None) -> Values:
        """Clean, cut and highlight one line."""
        text = clean(text).replace("\n", " ")
        if len(text) > LONGEST_LINE_CHARS:
            text = text[:LONGEST_LINE_CHARS] + "…"
        return {"number": number, "spans": _spans(text, self.marker.marks(text) if self.marker else ())}


def _spans(text: str, marks: Sequence[tuple[int, int]]) -> list[Span]:
    found: list[Span] = []
    at = 0
    for start, stop in marks:
        found += [(text[at:start], False), (text[start:stop], True)]
        at = stop
    return [span for span in (*found, (text[at:], False)) if span[0]]


KINDS: Mapping[str, str] = {
    "CODE": "all code",
    "DOC": "all docs",
    "CONVO": "all conversations",
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
    "CONVO_OTHER": "conversation",
}


class EditorLinks(Struct, frozen=True):
    """Links that open a line in an editor; none if the operator hides absolute paths."""

    template: str = ""
    roots: Mapping[str, str] | None = None

    def link(self, source: str, path: str | None, line: int | None) -> str:
        """Make the link; empty without a known root."""
        root = (self.roots or {}).get(source)
        if not self.template or not root or not path:
            return ""
        place = quote(f"{root.rstrip('/')}/{path}", safe="/", errors="surrogateescape")
        return self.template.replace("{path}", place).replace("{line}", str(line or 1))


def groups(ranked: Sequence[Sequence[Row]], query: str, editor: EditorLinks, first_rank: int = 1) -> list[Values]:
    """Group hits by document, in the order of their best hits; an item of `ranked` is a hit with further passages."""
    highlighter, top = Highlighter.of(query), top_scores([row for passages in ranked for row in passages])
    found: dict[str, list[tuple[Row, Values]]] = {}
    for number, passages in enumerate(ranked, start=first_rank):
        for nth, row in enumerate(passages, start=1):
            rank = str(number) if nth == 1 else f"{number}.{nth}"
            found.setdefault(row["document_id"], []).append((row, _hit(row, rank, query, highlighter, editor, top)))
    return [_group(members) for members in found.values()]


def _group(members: Sequence[tuple[Row, Values]]) -> Values:
    row = members[0][0]
    day = (row["timestamp"] or "")[:10]
    facts = (row["language"], row["service_name"], row["channel"] and f"#{row['channel']}", row["author"], day)
    return dict(
        title=clean_line(row["document_title"]) or clean_path(row["source_uri"].rpartition("/")[2]),
        uri=clean_path(row["source_uri"]),
        href=document_address(row["source_uri"]),
        kind=KINDS.get(row["corpus_type"], row["corpus_type"]),
        is_code=row["corpus_type"].startswith("CODE"),
        facts=tuple(clean_line(fact) for fact in facts if fact),
        hits=[hit for _, hit in members],
    )


def _hit(
    row: Row, rank: str, query: str, highlighter: Highlighter, editor: EditorLinks, top: Mapping[str, float]
) -> Values:
    first, sure = row["start_line"], row["confidence"]
    return dict(
        id=row["id"],
        rank=rank,
        place=place_of(row),
        lines=_lines(row),
        heading=_heading(row),
        href=chunk_address(row, query),
        editor=editor.link(row["document_source"], row["file_path"], first),
        chance="" if sure is None else f"{sure:.0%}",
        stale=bool(row["stale"]),
        snippet=highlighter.snippet(row["text"], first, row["symbol_name"]),
        trace=score_trace(row["scores"], top),
        notes=tuple(clean_line(each["description"]) for each in row["graph_context"]),
    )


def place_of(chunk: Row) -> str:
    """Name a chunk by path and line."""
    first = chunk["start_line"]
    return clean_path(chunk["source_uri"]) + (f":{first}" if first else "")


def _heading(row: Row) -> str:
    """Return the symbol or the path of headings, without a first heading that repeats the title."""
    parts = [clean_line(part.lstrip("# ")) for part in (row["section_path"] or "").split(" > ") if part.strip("# ")]
    if len(parts) > 1 and parts[0].lstrip("0123456789. ") == clean_line(row["document_title"]):
        parts = parts[1:]
    return clean_line(row["qualified_name"] or row["symbol_name"] or " › ".join(parts) or row["section_type"] or "")


def _lines(row: Row) -> str:
    if row["start_line"]:
        first, last = row["start_line"], row["end_line"] or row["start_line"]
        return f"line {first}" if first == last else f"lines {first}–{last}"
    return f"page {row['page']}" if row["page"] else ""
