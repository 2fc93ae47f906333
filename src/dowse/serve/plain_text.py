"""Plain text of results: hits enter; their locations, lines and scores leave, safe to print.

Indexed text is not trusted: its escape sequences could move the cursor, change the window's title or hide text.
So all of it passes `clean` or `clean_path` before it is printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from dowse.serve.best_line import Marker
    from dowse.types import AnyChunk, ScoredChunk

TAB_COLUMNS = 4
SCORE_DIGITS = 3

# CSI and OSC sequences with their parameters, then any other two-character escape.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b.?", re.DOTALL)
# C0 without tab and newline, DEL, C1, line separators, and the marks that reorder text on the screen.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PATH_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class ChunkLocation(msgspec.Struct, frozen=True):
    """Path of a chunk, for people and for programs."""

    name: str  # for people, escaped
    path: str  # for other programs, not escaped
    file: Path | None  # on this machine, if it is there


class ChunkLocator(msgspec.Struct, frozen=True):
    """Finder of a chunk's file: source roots by name, and the current folder."""

    roots: Mapping[str, str]
    cwd: Path

    def of(self, chunk: AnyChunk) -> ChunkLocation:
        """Return a path relative to the current folder if below it; else the index's name, absolute for programs."""
        root = self.roots.get(chunk.document_source)
        file = Path(root) / chunk.file_path if root and chunk.file_path else None
        if file is None or not os.path.isfile(file):
            return ChunkLocation(clean_path(chunk.source_uri), chunk.source_uri, None)
        if file.is_relative_to(self.cwd):
            path = str(file.relative_to(self.cwd))
            return ChunkLocation(clean_path(path), path, file)
        return ChunkLocation(clean_path(chunk.source_uri), str(file), file)


def clean(text: str) -> str:
    """Remove escape sequences and control characters; tabs become blanks, newlines stay."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _printable(_CONTROLS.sub("", text.expandtabs(TAB_COLUMNS)))


def clean_line(text: str) -> str:
    """Clean text and join it to one line."""
    return " ".join(clean(text).split())


def clean_path(path: str) -> str:
    """Escape the unprintable characters of a path, so that two paths never look the same."""
    return _printable(_PATH_CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), path))


def wants_colour(env: Mapping[str, str], *, refused: bool, terminal: bool) -> bool:
    """Decide by the flag first, then NO_COLOR, FORCE_COLOR, CLICOLOR, and the terminal itself."""
    if refused or env.get("NO_COLOR"):
        return False
    if forced(env):
        return True
    return terminal and env.get("CLICOLOR") != "0" and env.get("TERM") != "dumb"


def forced(env: Mapping[str, str]) -> bool:
    return any(env.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))


def hit_line(chunk: ScoredChunk, place: ChunkLocation, marker: Marker, *, scores: bool = False) -> str:
    """Format `path:line:column:text` of the best line, as `rg --vimgrep` does; with scores, `…:column:confidence:text`.

    `p3` stands for the line where there are pages and no lines.
    """
    best = marker.line(chunk.text, chunk.start_line, chunk.symbol_name)
    line = best.number or (f"p{chunk.page}" if chunk.page else 1)
    score = f"{chunk.confidence or 0.0:.2f}:" if scores else ""
    return f"{clean_path(place.path)}:{line}:{best.column}:{score}{best.text}"


def explain_lines(chunk: ScoredChunk) -> list[str]:
    """Format the scores of a result, one stage a line."""
    rows = [
        (score.stage, f"{score.value:.4f}", f"#{score.rank}" if score.rank else "", clean_line(score.why))
        for score in chunk.scores
    ]
    return table([("stage", "value", "rank", "why"), *rows], right=(1, 2))


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Align columns by their widest cell, two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def human_bytes(count: float) -> str:
    """Format a size as `3.4 MB`; a kilobyte is 1,024 bytes."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TB"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bullets(lines: Iterable[str], indent: int = 2) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _printable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded for a terminal."""
    return text.encode("utf-8", "replace").decode("utf-8")
