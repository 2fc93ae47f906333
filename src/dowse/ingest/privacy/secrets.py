"""Masking of secrets in text, line for line, with their number.

Secrets are never stored: not in a chunk, not in a summary, not in a hash of either. A mere name of a secret, such as
`${DB_PASSWORD}` or a variable, stays. Private keys, passwords in addresses and tokens are recognised by their form,
other secrets by the name they are assigned to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from dowse.ingest.privacy.secret_forms import (
    FORMS,
    LINE_STRUCTURES,
    NAMED_FORMS,
    STRUCTURES,
    TOOL_FLAGS,
    TOOL_STRUCTURES,
    literal_prefilters,
    possible_literals,
)
from dowse.ingest.privacy.secret_lines import (
    SHORTEST_QUOTED_CHARS,
    Span,
    looks_random,
    random_words,
    secret_cells,
    secret_words,
)
from dowse.ingest.privacy.secret_values import OWN_WORD, REFERENCE, given_values, stands_for
from dowse.ingest.sources.content import SNIFF_BYTES
from dowse.ports import SourceFile

MASK = "[masked]"
LONGEST_KEY_CHARS = 20_000  # chosen: a private key of 16,384 bits has 13,000


SHORTEST_TOKEN_CHARS = 12  # of the part between two dots
WINDOW_CHARS = 400  # a structure in which a name and its value are farther apart is not known


_STARTS = literal_prefilters(start for form in NAMED_FORMS for start in form.starts)
_FORMS_BY_START = {start: [form for form in FORMS if start in form.starts] for form in FORMS for start in form.starts}
_FORM_START = re.compile("|".join(map(re.escape, sorted(_FORMS_BY_START, key=len, reverse=True))))
# A password in an address; the user's name before it may be empty.
_ADDRESS = re.compile(r"://(?P<user>[^\s/:@\"'<>`]{0,128}):(?P<secret>[^\s/\"'<>`]{1,256})@")

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{24}")  # without it, the text mentions keys and holds none
_KEY_RUN = re.compile(r"^[A-Za-z0-9+/=]{40,80}(?:\n[A-Za-z0-9+/=]{4,80})+$", re.MULTILINE)
_KEY_LINES = re.compile(r"(?:\s*[A-Za-z0-9+/=]{16,}\s*(?:\\n)?)*")
_SECRET_KIND = re.compile(
    r"^[ \t-]*\{?[ \t]*\"?kind\"?:[ \t]*[\"']?Secret\b|\"kind\\?\":[ \t]*\\?\"Secret\\?\"", re.MULTILINE
)
_SECRET_DATA = re.compile(r"[ \t-]*(?:data|stringData):[ \t]*(?:#.*)?$")
_SECRET_FLOW = re.compile(r"(?:data|stringData)\\?\"?[ \t]{0,4}:\s{0,8}\{(?P<body>[^{}]{1,20000})\}")
_FLOW_VALUE = re.compile(r":[ \t]*\\?[\"']?(?P<secret>[^\s\"',}\\]{4,4096})")
_SECRET_VALUE = re.compile(r"(?P<key>[ \t]+[\w.\"'/-]+:[ \t]+)(?P<value>\S.*)$")


def mask(text: str) -> tuple[str, int]:
    """Mask the secrets of a text and count them. Line numbers stay the same."""
    count = 0
    if "PRIVATE KEY" in text:
        text, count = _without_keys(text)
    if "Secret" in text and _SECRET_KIND.search(text):
        text, more = _without_secret_data(text)
        count += more
    if "://" in text and "@" in text:
        text, more = _replaced(text, _ADDRESS)
        count += more
    lowered = _lower(text)
    text, more = _spliced(text, _merged(given_values(text, lowered)))
    text, others = _spliced(text, _merged(_spans(text, _lower(text) if more else lowered)))
    return text, count + more + others


def mask_key_lines(text: str) -> tuple[str, int]:
    """Mask runs of base64 lines: the parts of a private key whose BEGIN is in another chunk."""
    return _spliced(text, (found.span() for found in _KEY_RUN.finditer(text)))


def masked_file(file: SourceFile) -> tuple[SourceFile, int]:
    """Mask a plain text file for its reader; the text of other files is masked after reading.

    Latin-1 maps every byte to a character and back, so that only bytes of secrets change, in any encoding that
    contains ASCII.
    """
    if b"\0" in file.data[:SNIFF_BYTES]:
        return file, 0
    text, count = mask(file.data.decode("latin-1"))
    return (replace(file, data=text.encode("latin-1")), count) if count else (file, 0)


def _replaced(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    return _spliced(text, (m.span("secret") for m in pattern.finditer(text) if not stands_for(m["secret"])))


def _spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield what tokens, structures and lines show to be secret, in any order."""
    words = random_words(text)
    starts = frozenset(possible_literals(text, _STARTS))
    for form in NAMED_FORMS:
        for start in form.starts:
            at = text.find(start) if start in starts else -1
            while at >= 0:
                found = None if text[at - 1 : at].isalnum() else form.rest.match(text, at + len(start))
                if found:
                    yield (
                        (at if text[at : found.start("secret")] == start else found.start("secret")),
                        found.end("secret"),
                    )
                at = text.find(start, at + len(start))
    for begin, end in words:
        if end - begin >= SHORTEST_TOKEN_CHARS:
            yield from _tokens(text, begin, end)
    words = [(begin, end) for begin, end in words if looks_random(text[begin:end], SHORTEST_QUOTED_CHARS)]
    tools = TOOL_STRUCTURES if any(flag in lowered for flag in TOOL_FLAGS) else ()
    for structure in (*STRUCTURES, *tools):
        if structure.literal in lowered:
            yield from _structured(lowered, structure.pattern, 0, len(text))
    for begin, end in _windows(text, words):
        for structure in LINE_STRUCTURES:
            if lowered.find(structure.literal, begin, end) >= 0:
                yield from _structured(lowered, structure.pattern, begin, end)
        yield from secret_cells(text, lowered, begin, end)
    yield from secret_words(text, lowered, words)


def _tokens(text: str, begin: int, end: int) -> Iterator[Span]:
    """Yield the tokens that begin in a word, or before it with a dot or colon between."""
    while begin > 1 and text[begin - 1] in ".:|" and text[begin - 2].isalnum():
        begin -= 2
        while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_-"):
            begin -= 1
    for start in _FORM_START.finditer(text, begin, end):
        # Not inside a longer word: `task-…`, `risk-…`.
        if not text[start.start() - 1 : start.start()].isalnum():
            for form in _FORMS_BY_START[start[0]]:
                if found := form.rest.match(text, start.end()):
                    yield start.start(), found.end()


def _windows(text: str, words: Iterable[Span]) -> Iterator[Span]:
    """Yield the lines around random words, joined where they meet."""
    first = last = -1
    for begin, end in words:
        begin = max(text.rfind("\n", 0, max(0, begin - WINDOW_CHARS)) + 1, begin - 2 * WINDOW_CHARS)
        end = min(len(text), end + WINDOW_CHARS)
        if begin > last >= 0:
            yield first, last
            first = begin
        first, last = (begin if first < 0 else first), max(last, end)
    if last >= 0:
        yield first, last


def _structured(lowered: str, pattern: re.Pattern[str], begin: int, end: int) -> Iterator[Span]:
    for found in pattern.finditer(lowered, begin, end):
        if not stands_for(found["secret"]) and not OWN_WORD.fullmatch(found["secret"]):
            yield found.span("secret")


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order; those that overlap become one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _spliced(text: str, spans: Iterable[tuple[int, int]]) -> tuple[str, int]:
    """Replace each span by a mask with as many lines."""
    parts: list[str] = []
    done = count = 0
    for start, stop in spans:
        parts += [text[done:start], MASK, "\n" * text.count("\n", start, stop)]
        done = stop
        count += 1
    return ("".join((*parts, text[done:])), count) if count else (text, 0)


def _without_keys(text: str) -> tuple[str, int]:
    """Mask a private key from BEGIN to END; without an END, the lines that look like a key."""
    spans: list[tuple[int, int]] = []
    for begin in _BEGIN.finditer(text):
        if spans and begin.start() < spans[-1][1]:
            continue
        stop = text.find("-----END", begin.end(), begin.end() + LONGEST_KEY_CHARS)
        if stop < 0:
            found = _KEY_LINES.match(text, begin.end(), begin.end() + LONGEST_KEY_CHARS)
            stop = found.end() if found else begin.end()
        if _KEY_BODY.search(text, begin.end(), stop):
            spans.append((begin.end(), stop))
    return _spliced(text, spans)


def _lower(text: str) -> str:
    """Return the text in lower case, at the same positions; letters beyond ASCII do not matter here."""
    return text.encode("latin-1", "replace").lower().decode("latin-1")


def _without_secret_data(text: str) -> tuple[str, int]:
    """Mask the values of Kubernetes Secrets line by line, because a template need not be valid YAML."""
    text, count = _spliced(
        text,
        [
            value.span("secret")
            for flow in _SECRET_FLOW.finditer(text)
            for value in _FLOW_VALUE.finditer(text, *flow.span("body"))
            if not REFERENCE.match(value["secret"])
        ],
    )
    lines = text.split("\n")
    first = 0
    for at in [*(i for i, line in enumerate(lines) if line.startswith("---")), len(lines)]:
        if any(_SECRET_KIND.search(line) for line in lines[first:at]):
            count += _mask_data(lines, first, at)
        first = at
    return "\n".join(lines), count


def _mask_data(lines: list[str], first: int, stop: int) -> int:
    """Mask the lines of one resource in place; return the number of values."""
    count = 0
    inside = -1  # the indentation of `data`, whose keys are indented more
    block = -1  # the indentation of a key whose value is a block of lines
    for at in range(first, stop):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        if line.strip() and (inside < 0 or indent <= inside):
            inside = len(line) - len(line.lstrip(" \t-")) if _SECRET_DATA.match(line) else -1
            block = -1
            continue
        if inside < 0 or not line.strip():
            continue
        if 0 <= block < indent:
            lines[at] = " " * indent + MASK
            continue
        found = _SECRET_VALUE.match(line)
        block = indent if found and found["value"][0] in "|>" else -1
        if found and not REFERENCE.match(found["value"].strip("\"'")):
            lines[at] = found["key"] + (found["value"] if block >= 0 else MASK)
            count += 1
    return count
