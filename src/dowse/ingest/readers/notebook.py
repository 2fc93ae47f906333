"""Reader of Jupyter notebooks: text, code and the first printed lines of each cell.

The cells are written as one Markdown page, with code in fences, and cut like one; lines are those of the file.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import Lines, decode, starts_of
from dowse.ingest.chunking.page import SectionedText, document_of
from dowse.ingest.readers.markdown import markdown_sections
from dowse.ports import SourceFile
from dowse.types import Document

MOST_OUTPUT_LINES = 10  # of a cell; chosen: a table's head, the end of a traceback
LONGEST_OUTPUT_CHARS = 600  # of a cell; chosen
_NEAR_CHARS = 65_536  # how far the next line of a cell may be; chosen


def read_notebook(file: SourceFile) -> Document:
    """Read a notebook without pictures and other data, and without outputs beyond their first lines."""
    raw = decode(file.data)
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as err:
        raise BadRequestError(f"not a notebook: {err}") from err
    language = _text_at(found, "metadata", "kernelspec", "language") or "python"
    writer = _NotebookWriter(raw)
    for cell in _cells(found):
        writer.cell(cell, language)

    def lines(first: int, last: int) -> Lines:
        start = writer.places[first - 1]
        return start, max(start, writer.places[last - 1])

    text = "\n".join(writer.lines)
    return document_of(file, SectionedText(text, markdown_sections(text)), lines)


def _cells(notebook: Any) -> list[dict[str, Any]]:
    """Return the cells of format 4, or of the sheets of format 3."""
    if not isinstance(notebook, dict):
        raise BadRequestError("not a notebook: not a JSON object")
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
    """Return a text that is one string or a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


class _NotebookWriter:
    """Writer of the page; it keeps the line of the file for each line of the page."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.lines: list[str] = []
        self.places: list[int] = []
        self.at = 0
        self.starts = starts_of(raw)

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
