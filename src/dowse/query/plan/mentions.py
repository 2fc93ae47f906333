"""Mentions: parts of a query that are spelled as code, such as names, files, lines, error codes and quotes."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["code", "phrase", "place", "file", "call", "dotted", "error", "snake", "camel"]


class Mention(msgspec.Struct, frozen=True):
    """A part of the query that is spelled as code or in quotes."""

    kind: Kind
    text: str  # as written, without the marks around it
    start: int  # of the span in the question, with the marks
    end: int

    @property
    def name(self) -> str | None:
        """The name of a symbol or file; None where the text is no name."""
        bare = self.text.strip()
        if self.kind in ("place", "code", "call"):
            bare = re.sub(r":\d+(?:[:-]\d+)*$", "", bare)
            bare = re.sub(r"\([^()]*\)$", "", bare)
        if self.kind == "phrase" and not _LONE_NAME.fullmatch(bare):
            return None
        return bare if bare and not _BLANK.search(bare) else None


_EXTENSIONS = (
    "bash|bat|cc|cfg|cjs|conf|cpp|cs|css|csv|dart|ex|exs|go|gradle|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|"
    "log|lua|md|mjs|php|pl|proto|ps1|py|pyi|r|rb|rs|rst|scala|scss|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|"
    "yml|zig"
)
_BLANK = re.compile(r"\s")
_LONE_NAME = re.compile(r"[A-Za-z_$][\w$.]*")
_DIGITS, _CAPITALS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# In this order; a match hides its text from later patterns. The second element holds characters that every match has
# one of: most queries have none of them, which saves the search.
_PATTERNS: tuple[tuple[Kind, str, re.Pattern[str]], ...] = (
    ("code", "`", re.compile(r"`{1,3}(?P<text>[^`\n]{1,200}?)`{1,3}")),
    (
        "phrase",
        '"“«',
        re.compile(r"\"(?P<text>[^\"\n]{2,200})\"|“(?P<curly>[^”\n]{2,200})”|«(?P<angle>[^»\n]{2,200})»"),
    ),
    ("phrase", "'", re.compile(r"(?<!\w)'(?P<text>[^'\n]{2,200})'(?!\w)")),
    ("place", ":", re.compile(rf"(?<![\w/])(?P<text>[\w./-]{{0,120}}\w\.(?:{_EXTENSIONS}):\d+(?:[:-]\d+)?)\b")),
    ("file", ".", re.compile(rf"(?<![\w/])(?P<text>[\w./-]{{0,120}}[\w-]\.(?:{_EXTENSIONS}))(?![\w(])")),
    (
        "file",
        "/",
        re.compile(r"(?<![\w/.])(?P<text>(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+){2,}/?|\.{0,2}/[\w.-]+(?:/[\w.-]+)+)"),
    ),
    # Not the plural of careful writers: service(s).
    ("call", "(", re.compile(r"(?<![\w.])(?P<text>[A-Za-z_$][\w$]*(?:(?:\.|::|->)\w+)*\((?!e?s\))[^()\n]{0,60}\))")),
    ("error", "0E", re.compile(r"\b(?P<text>0x[0-9A-Fa-f]{4,16}|E(?:CONN|ADDR|HOST|NET|NO)[A-Z]{2,})\b")),
    ("error", "E", re.compile(r"\b(?P<text>E(?:ACCES|AGAIN|BADF|BUSY|EXIST|INVAL|IO|ISDIR|PERM|PIPE|TIMEDOUT))\b")),
    (
        "dotted",
        ".:>#",
        re.compile(r"(?<![\w.@/])(?P<text>[A-Za-z_$][\w$]+(?:(?:\.|::|->|#)[A-Za-z_$][\w$]+)+)(?![\w@])"),
    ),
    ("snake", "_", re.compile(r"(?<!\w)(?P<text>_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*|__?[A-Za-z]\w*)(?!\w)")),
    ("error", _DIGITS, re.compile(r"\b(?P<text>[A-Z]{1,8}(?:-[A-Z]{1,8})?-?\d{2,6}[A-Z]?)\b")),
    ("camel", _CAPITALS, re.compile(r"\b(?P<text>[A-Za-z][A-Za-z0-9]*[a-z0-9][A-Z]\w*|[A-Z]{2,}[a-z]\w+)\b")),
)
# Standards, ciphers, models and number formats that look like error codes.
_NO_CODES = """
    AES BF COVID FP GPT H HTTP INT IPV ISO MD MP Q RFC RSA SHA UINT UTF V X
"""
# Product names in camel case, which are rarely symbols.
_NO_NAMES = """
    clickhouse devops dynamodb ebay facebook github gitlab graphql iphone ipad javascript latex linkedin macos mcdonald
    mongodb mysql nodejs openai opentelemetry paypal postgresql powershell pytorch rabbitmq sqlite tensorflow typescript
    webassembly websocket wordpress youtube
"""
LONGEST_CHARACTERS = 2_000  # chosen: longer queries are pasted logs, in which everything looks like a name


def find_mentions(text: str) -> tuple[Mention, ...]:
    """Return mentions in order; none overlaps another."""
    found: list[Mention] = []
    rest = text[:LONGEST_CHARACTERS]
    characters = set(rest)
    for kind, marks, pattern in _PATTERNS:
        if characters.isdisjoint(marks):
            continue
        for match in pattern.finditer(rest):  # over the text before this kind's mentions are hidden
            inner = next((each for each in match.groups() if each is not None), "").strip()
            if inner and not _everyday(kind, inner):
                found.append(Mention(kind, inner, *match.span()))
                rest = rest[: match.start()] + "\n" * len(match[0]) + rest[match.end() :]
    return tuple(sorted(found, key=lambda mention: mention.start))


def lone_name(text: str) -> tuple[str, ...]:
    """Return a query of one word, which may be the name of a symbol however it is spelled."""
    return (text.strip(),) if _LONE_NAME.fullmatch(text.strip().rstrip("?!")) else ()


def without(text: str, mentions: tuple[Mention, ...]) -> str:
    """Return the query with each mention replaced by a word that no rule matches."""
    for mention in sorted(mentions, key=lambda each: -each.start):
        text = text[: mention.start] + "it" + text[mention.end :]
    return text


def _everyday(kind: Kind, text: str) -> bool:
    """Return whether text that looks like code is ordinary prose."""
    if kind == "error" and not text.startswith("0x"):
        return re.split(r"[-\d]", text)[0] in _NO_CODES.split()
    if kind == "camel":
        plural = re.fullmatch(r"[A-Z]{2,}s", text) is not None  # APIs
        return plural or text.lower() in _NO_NAMES.split()
    return False
