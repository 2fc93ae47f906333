"""A Jupyter notebook goes in; a Document of its cells, text, code and the first lines that they printed, comes out.

The cells are written down as one Markdown page, with code in fences, and cut like one; lines are those of the file.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import altered, decode
from dowse.ingest.chunking.page_document import Page, document_of
from dowse.ingest.readers.markdown import markdown_reader, markdown_sections
from dowse.ports import SourceFile
from dowse.types import Chunk, Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST_OUTPUT_LINES = 10  # of a cell; chosen: a table's head, the end of a traceback
LONGEST_OUTPUT_CHARS = 600  # of a cell; chosen
_NEAR_CHARS = 65_536  # how far the next line of a cell may be; chosen


@dataclass(frozen=True)
class NotebookReader:
    """Pictures and other data are left out; so are outputs beyond their first lines."""

    parser: MarkdownIt
    name: str = "notebook"

    def read(self, file: SourceFile) -> Document:
        raw = decode(file.data)
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as err:
            raise BadRequestError(f"not a notebook: {err}") from err
        cells = _cells(found)
        language = _text_at(found, "metadata", "kernelspec", "language") or "python"
        writer = _Writer(raw)
        for cell in cells:
            writer.cell(cell, language)
        text = "\n".join(writer.lines)
        document = document_of(file, Page(text, markdown_sections(self.parser, text)))
        return replace(document, chunks=tuple(_in_source(chunk, writer.places) for chunk in document.chunks))


def notebook_reader() -> NotebookReader:
    return NotebookReader(markdown_reader().parser)


def _cells(notebook: Any) -> list[dict[str, Any]]:
    """Of format 4, or of the sheets of format 3."""
    if not isinstance(notebook, dict):
        raise BadRequestError("not a notebook: it is no JSON object")
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):
        cells = [cell for sheet in notebook["worksheets"] if isinstance(sheet, dict) for cell in sheet.get("cells", [])]
    if not isinstance(cells, list):
        raise BadRequestError("not a notebook: it has no list of cells")
    return [cell for cell in cells if isinstance(cell, dict)]


def _text_at(found: Any, *keys: str) -> str | None:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else None


def _joined(value: Any) -> str:
    """Notebooks write a text as one string or as a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


@dataclass
class _Writer:
    """The page so far, and for each of its lines the line of the file."""

    raw: str
    lines: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    at: int = 0
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = list(accumulate((len(line) + 1 for line in self.raw.split("\n")), initial=0))

    def cell(self, cell: dict[str, Any], language: str) -> None:
        source = _joined(cell.get("source", cell.get("input"))).rstrip()
        if not source:
            return
        if cell.get("cell_type") != "code":
            self._write(source)
            self._line("")
            return
        fence = "~" * 8 if "```" in source else "```"
        self._line(fence + language)
        self._write(source)
        self._line(fence)
        printed = _printed(cell.get("outputs"))
        if printed:
            self._line("")
            self._line("Out:")
            self._write(printed, find=False)
        self._line("")

    def _write(self, text: str, *, find: bool = True) -> None:
        first = True
        for line in text.split("\n"):
            if find and line.strip():
                self._find(line, len(self.raw) if first else self.at + _NEAR_CHARS)
                first = False
            self._line(line)

    def _line(self, text: str) -> None:
        self.lines.append(text)
        self.places.append(bisect_right(self.starts, self.at))

    def _find(self, line: str, stop: int) -> None:
        for escape in (False, True):
            written = json.dumps(line, ensure_ascii=escape)[1:-1]
            found = self.raw.find(written, self.at, stop)
            if found >= 0:
                self.at = found + len(written)
                return


def _printed(outputs: Any) -> str:
    texts = [_output(each) for each in outputs if isinstance(each, dict)] if isinstance(outputs, list) else []
    lines = "\n".join(filter(None, texts)).split("\n")[:MOST_OUTPUT_LINES]
    return "\n".join(lines)[:LONGEST_OUTPUT_CHARS].rstrip()


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, dict) else output.get("text")
    return _joined(plain).rstrip()


def _in_source(chunk: Chunk, places: list[int]) -> Chunk:
    first, last = places[(chunk.start_line or 1) - 1], places[(chunk.end_line or 1) - 1]
    return altered(chunk, start_line=first, end_line=max(first, last))
