"""The text of a Markdown file goes in; what its front matter says, and where the body starts, come out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_PAIR = re.compile(r"([A-Za-z_][\w .-]{0,60}?)\s*[:=]\s*(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
_DATES = ("date", "created", "created_at", "published", "timestamp", "updated", "last_updated")
_LONGEST_LINES = 200  # chosen: a rule line at the top of a long page is not front matter


@dataclass(frozen=True)
class FrontMatter:
    """Pairs in the order they were written, each key once and in lower case."""

    pairs: tuple[tuple[str, str], ...] = ()
    body_start: int = 0  # character offset

    def get(self, *keys: str) -> str | None:
        """The first of the keys that has a value."""
        values = dict(self.pairs)
        return next((values[key] for key in keys if values.get(key)), None)

    @property
    def timestamp(self) -> datetime | None:
        value = self.get(*_DATES)
        return None if value is None else moment(value)


def parse(text: str) -> FrontMatter:
    """Simple `key: value` lines and lists; deeper structure is passed over. No closing line: no front matter."""
    lines = text.split("\n", _LONGEST_LINES)
    closing = _FENCES.get(lines[0].rstrip())
    if closing is None:
        return FrontMatter()
    pairs: dict[str, str] = {}
    key, start = "", len(lines[0]) + 1
    for line in lines[1:_LONGEST_LINES]:
        start += len(line) + 1
        if line.rstrip() in closing:
            return FrontMatter(tuple(pairs.items()), min(start, len(text)))
        if (pair := _PAIR.fullmatch(line)) is not None:
            key = pair[1].lower()
            pairs[key] = _plain(pair[2])
        elif key and (item := _ITEM.fullmatch(line)) is not None:
            pairs[key] = ", ".join(part for part in (pairs[key], _plain(item[1])) if part)
    return FrontMatter()


def moment(value: str) -> datetime | None:
    """ISO 8601 or seconds since the epoch, as aware UTC; a naive time counts as UTC, nonsense as no time."""
    try:
        if re.fullmatch(r"\d{9,11}(\.\d+)?", value):
            return datetime.fromtimestamp(float(value), UTC)
        found = datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _plain(value: str) -> str:
    """Without quotes, and a list without its brackets."""
    value = value.strip()
    if value[:1] == "[" and value[-1:] == "]":
        return ", ".join(_plain(part) for part in value[1:-1].split(",") if part.strip())
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
