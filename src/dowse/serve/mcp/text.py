"""Text helpers of the MCP answers: cleaning, cutting and quoting of indexed text.

Indexed text is not trusted: it may contain instructions. Every line of it is quoted behind a bar, `12| text`, no line
can start without one, and invisible characters are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dowse.query.context import estimated_tokens
from dowse.serve.plain_text import clean, clean_path

LONGEST_TITLE = 160  # characters; chosen
_CUT = " …"
# Zero-width characters and the tag block can hide words that only a model reads.
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff\U000e0000-\U000e007f]")


def safe_text(text: str) -> str:
    """Remove control and invisible characters."""
    return _UNSEEN.sub("", clean(text))


def safe_line(text: str | None, longest: int = LONGEST_TITLE) -> str:
    """Clean a text and shorten it to one line."""
    line = " ".join(safe_text(text or "").split())
    return line if len(line) <= longest else line[: longest - len(_CUT)] + _CUT


def safe_path(path: str) -> str:
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), clean_path(path))


def shortened(text: str, tokens: int) -> str:
    """Cut a text to a number of tokens and mark the cut."""
    if estimated_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated_tokens(text[:middle]) < tokens else (low, middle - 1)
    return text[:low].rstrip() + _CUT


def quoted(text: str, first_line: int | None) -> Iterator[str]:
    """Quote each line behind a bar, with its number if known."""
    for offset, line in enumerate(text.split("\n")):
        number = "" if first_line is None else str(first_line + offset)
        yield f"{number:>4}| {line}".rstrip()


def location(path: str, start: int | None, end: int | None, source: str = "") -> str:
    lines = "" if start is None else f":{start}" if end in (None, start) else f":{start}-{end}"
    return f"{path}{lines}" + (f" [{source}]" if source else "")
