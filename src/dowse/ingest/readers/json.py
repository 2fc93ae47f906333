"""Reader of JSON and JSON lines: chunks hold whole members, under their path.

The text is kept as written and cut between members; the dotted path of the enclosing object leads a chunk. Nothing is
loaded: a scan of the brackets is enough, accepts files with comments too, and has no limit of depth. An API
description over several lines has a chunk for each operation or schema instead, as in YAML, of which JSON is a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.chunking.pack import CODE, Budget, Span, windows
from dowse.ports import SourceFile
from dowse.types import Document

DEEPEST = 16  # levels that are cut open; chosen: each costs a scan of its text
NESTED = 1000  # levels beyond which brackets are no structure; chosen
LONGEST_PATH_CHARS = 200  # chosen
API_HEAD_CHARS = 4000  # that hold the version key of an API description; chosen
_API = re.compile(r'"(?:openapi|swagger)"\s*:\s*"')
_TOKEN = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|[{}\[\],]|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/')
_KEY = re.compile(r'\s*(?:(?://[^\n]*+\n|/\*.*?\*/)\s*)*("(?:[^"\\\n]++|\\.)*+"|[\w$-]+)\s*:\s*', re.DOTALL)
_BARE = re.compile(r"[A-Za-z_$][\w$-]*")


class JsonMember(msgspec.Struct, frozen=True):
    """Part of an object or array. The spans of all parts touch; each value is within its span."""

    path: str
    span: Span
    value: Span


def read_json(file: SourceFile) -> Document:
    """Read settings, records and JSON lines."""
    text = decode(file.data)
    if _API.search(text, 0, API_HEAD_CHARS) and (described := _operations(text)):
        return build(file, text, described)
    whole = (0, len(text))
    members = cut(text, JsonMember("", whole, whole), CODE.fitted(text))
    return build(file, text, (ChunkSpan(span, path, path or None) for path, span in members))


def _operations(text: str) -> list[ChunkSpan]:
    """Return the parts of an API description; none for other JSON, or where all of it is on one line."""
    from dowse.ingest.manifests.openapi import is_openapi, openapi_pieces
    from dowse.ingest.manifests.yaml_nodes import roots_of  # loaded only for API descriptions
    from dowse.ingest.manifests.yaml_parts import page_of

    page, roots = page_of(text), roots_of(text)
    described = len(roots) == 1 and is_openapi(roots[0]) and len(page.lines) > len(roots[0].pairs) + 1
    return list(openapi_pieces(page, roots[0])) if described else []


def cut(text: str, whole: JsonMember, budget: Budget, depth: int = 0) -> Iterator[tuple[str, Span]]:
    """Return spans that cover the member, each with its enclosing path; siblings are packed together."""
    start, stop = whole.span
    if stop - start <= budget.limit_chars:
        yield whole.path, whole.span
        return
    members = list(_members(text, whole)) if depth < DEEPEST else []
    if not members:
        yield from ((whole.path, span) for span in windows(text, whole.span, budget))
        return
    open_start = start
    for member in members:
        if member.span[1] - open_start <= budget.target_chars:
            continue
        if member.span[0] > open_start:
            yield whole.path, (open_start, member.span[0])
        open_start = member.span[0]
        if member.span[1] - member.span[0] > budget.limit_chars:
            yield from cut(text, member, budget, depth + 1)
            open_start = member.span[1]
    if open_start < stop:
        yield whole.path, (open_start, stop)


def _members(text: str, whole: JsonMember) -> Iterator[JsonMember]:
    """Return the parts of its object or array, or the values of a file of JSON lines."""
    found = _values(text, whole.value)
    if len(found) == 1:
        first, last = found[0][0] + 1, found[0][1] - 1
        parts = list(_parts(text, (first, last)))
        is_array = text[first - 1] == "["
    else:
        parts, is_array = found, True
    start = whole.span[0]
    for at, part in enumerate(parts):
        named = None if is_array else _KEY.match(text, *part)
        key = f"[{at}]" if is_array else named[1].strip('"') if named else ""
        stop = parts[at + 1][0] if at + 1 < len(parts) else whole.span[1]
        yield JsonMember(_joined(whole.path, key), (start, stop), part)
        start = stop


def _values(text: str, span: Span) -> list[Span]:
    """Return the outermost objects and arrays; none when they are nested beyond reason."""
    values: list[Span] = []
    depth = start = 0
    for token in _TOKEN.finditer(text, *span):
        mark = token[0]
        if mark in "{[":
            start = token.start() if depth == 0 else start
            depth += 1
            if depth > NESTED:
                return []
        elif mark in "}]" and depth:
            depth -= 1
            if depth == 0:
                values.append((start, token.end()))
    return values


def _parts(text: str, inside: Span) -> Iterator[Span]:
    """Return the parts that the commas separate, outside of brackets."""
    depth, start = 0, inside[0]
    for token in _TOKEN.finditer(text, *inside):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif mark == "," and depth == 0:
            yield start, token.start()
            start = token.end()
    if text[start : inside[1]].strip():
        yield start, inside[1]


def _joined(path: str, key: str) -> str:
    """Return the dotted path; a key that is no name is quoted."""
    if key.startswith("[") or not key:
        return (path + key)[:LONGEST_PATH_CHARS]
    name = key if _BARE.fullmatch(key) else f'"{key}"'
    return (f"{path}.{name}" if path else name)[:LONGEST_PATH_CHARS]
