"""Reader of .proto files: a chunk for each message, enum and remote procedure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dowse.ingest.chunking.document import ChunkSpan, build, decode, trail
from dowse.ingest.manifests.yaml_parts import Region, TextLines, above, page_of, spans_of
from dowse.ports import SourceFile
from dowse.types import Document

LONGEST_HEAD_CHARS = 300  # chosen: a chunk repeats it
_DECLARED = re.compile(r"\s*(?P<kind>message|enum|service|extend|rpc)\s+(?P<name>[\w.]+)")
_PACKAGE = re.compile(r"^\s*package\s+(?P<name>[\w.]+)\s*;", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+(?:public\s+|weak\s+)?\"(?P<path>[^\"\n]+)\"", re.MULTILINE)
_RPC = re.compile(r"rpc\s+(?P<name>\w+)")
_QUIET = re.compile(r"//.*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_COMMENT = re.compile(r"\s*(?://|/\*|\*)\s?/?(?P<text>.*?)(?:\*/)?\s*")


class Declared(msgspec.Struct, frozen=True):
    """Message, enum, service or procedure. Its region includes the comment above it."""

    kind: str
    name: str
    line: int  # of the declaration itself
    region: Region


def read_proto(file: SourceFile) -> Document:
    """Read declarations by their braces; braces in comments and strings do not count."""
    text = decode(file.data)
    package = found["name"] if (found := _PACKAGE.search(text)) else ""
    return build(file, text, _pieces(page_of(text), package))


def _pieces(page: TextLines, package: str) -> Iterator[ChunkSpan]:
    imports = tuple(found["path"] for found in _IMPORT.finditer(page.text))
    done = 0
    for declared in (*_declared(page, page.all), None):
        stop = declared.region.first if declared else len(page.lines)
        if stop > done:
            yield from spans_of(page, Region(done, stop), None, package, imports=imports)
        if declared:
            yield from (_service if declared.kind == "service" else _block)(page, declared, package)
            done = declared.region.stop


def _block(page: TextLines, declared: Declared, package: str, owner: str = "") -> Iterator[ChunkSpan]:
    """Return the chunk of a declaration; a long message is cut by size, and each part has its name."""
    head = page.lines[declared.line].strip().rstrip(" {")[:LONGEST_HEAD_CHARS]
    yield from spans_of(
        page,
        declared.region,
        None,
        package,
        f"service {owner}" if owner else "",
        head,
        symbol_name=declared.name,
        symbol_kind=declared.kind,
        qualified_name=f"{owner}.{declared.name}" if owner else declared.name,
        signature=head,
        summary=_summary(page, declared) or None,
    )


def _service(page: TextLines, declared: Declared, package: str) -> Iterator[ChunkSpan]:
    """Return a chunk for the head of a service, which lists its procedures, and one for each of them."""
    inside = Region(declared.line + 1, declared.region.stop)
    calls = [each for each in _declared(page, inside) if each.kind == "rpc"]
    start, stop = page.span(declared.region)
    if not calls:
        yield from _block(page, declared, package)
        return
    names = ", ".join(_RPC.findall(page.text[start:stop]))
    head = Region(declared.region.first, calls[0].region.first)
    signature = f"service {declared.name}: {names}"
    yield ChunkSpan(
        page.span(head),
        trail(package, signature),
        symbol_name=declared.name,
        symbol_kind="service",
        qualified_name=declared.name,
        signature=signature,
        summary=_summary(page, declared) or None,
    )
    for call in calls:
        yield from _block(page, call, package, declared.name)


def _summary(page: TextLines, declared: Declared) -> str:
    """Return the comment above a declaration, as one line."""
    found = (_COMMENT.fullmatch(line) for line in page.lines[declared.region.first : declared.line])
    return " ".join(each["text"].strip() for each in found if each and each["text"].strip())[:300]


def _declared(page: TextLines, within: Region) -> Iterator[Declared]:
    """Return the declarations at the outermost level of the region, by counting braces."""
    line = within.first
    while line < within.stop:
        found = _DECLARED.match(page.lines[line])
        if found is None:
            line += 1
            continue
        first, stop = above(page, line, within.first, ("//", "/*", "*")), _end(page, line, within.stop)
        yield Declared(found["kind"], found["name"], line, Region(first, stop))
        line = stop


def _end(page: TextLines, line: int, stop: int) -> int:
    """Return the line behind the brace or semicolon that ends the declaration at this line."""
    depth = 0
    for at in range(line, stop):
        text = _QUIET.sub("", page.lines[at])
        depth += text.count("{") - text.count("}")
        if depth <= 0 and ("}" in text or ";" in text):
            return at + 1
    return stop
