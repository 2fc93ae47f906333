"""A .proto file goes in; a Document with a chunk for each message, enum and remote procedure comes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dowse.ingest.chunking.document import Heading, Piece, build, decode, file_name
from dowse.ingest.manifests.yaml_parts import SEPARATOR, Page, Region, page_of, parts
from dowse.ingest.sources.kinds import kind_of
from dowse.ports import SourceFile
from dowse.types import Document

_DECLARED = re.compile(r"\s*(?P<kind>message|enum|service|extend|rpc)\s+(?P<name>[\w.]+)")
_PACKAGE = re.compile(r"^\s*package\s+(?P<name>[\w.]+)\s*;", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+(?:public\s+|weak\s+)?\"(?P<path>[^\"\n]+)\"", re.MULTILINE)
_RPC = re.compile(r"rpc\s+(?P<name>\w+)")
_QUIET = re.compile(r"//.*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_COMMENT = re.compile(r"\s*(?://|/\*|\*)\s?/?(?P<text>.*?)(?:\*/)?\s*")


@dataclass(frozen=True)
class Declared:
    """A message, enum, service or procedure. Its region holds the comment above it, too."""

    kind: str
    name: str
    line: int  # of the declaration itself
    region: Region


@dataclass(frozen=True)
class ProtoReader:
    """Reads declarations by their braces; comments and strings do not count."""

    name: str = "proto"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        page = page_of(text)
        package = found["name"] if (found := _PACKAGE.search(text)) else ""
        return build(file, kind_of(file), text, Heading(file_name(file)), _pieces(page, package))


def _pieces(page: Page, package: str) -> Iterator[Piece]:
    imports = tuple(found["path"] for found in _IMPORT.finditer(page.text))
    done = 0
    for declared in _declared(page, page.all):
        if declared.region.first > done:
            region = Region(done, declared.region.first)
            yield from (Piece(part.span, package, imports=imports) for part in parts(page, region, None))
        yield from _service(page, declared, package) if declared.kind == "service" else _block(page, declared, package)
        done = declared.region.stop
    if done < len(page.lines):
        yield from (
            Piece(part.span, package, imports=imports) for part in parts(page, Region(done, len(page.lines)), None)
        )


def _block(page: Page, declared: Declared, package: str, owner: str = "") -> Iterator[Piece]:
    """A message that is too long is cut where it is; each part bears its name."""
    qualified = f"{owner}.{declared.name}" if owner else declared.name
    head = page.lines[declared.line].strip().rstrip(" {")
    for part in parts(page, declared.region, None):
        yield Piece(
            part.span,
            SEPARATOR.join(each for each in (package, f"service {owner}" if owner else "", head) if each),
            symbol_name=declared.name,
            symbol_kind=declared.kind,
            qualified_name=qualified,
            signature=head,
            summary=_summary(page, declared) or None,
        )


def _service(page: Page, declared: Declared, package: str) -> Iterator[Piece]:
    """The service's own line, which tells all its procedures, and then each of them."""
    inside = Region(declared.line + 1, declared.region.stop)
    calls = [each for each in _declared(page, inside) if each.kind == "rpc"]
    start, stop = page.span(declared.region)
    if not calls:
        yield from _block(page, declared, package)
        return
    names = ", ".join(_RPC.findall(page.text[start:stop]))
    head = Region(declared.region.first, calls[0].region.first)
    signature = f"service {declared.name}: {names}"
    yield Piece(
        page.span(head),
        SEPARATOR.join(each for each in (package, signature) if each),
        symbol_name=declared.name,
        symbol_kind="service",
        qualified_name=declared.name,
        signature=signature,
        summary=_summary(page, declared) or None,
    )
    for call in calls:
        yield from _block(page, call, package, declared.name)


def _summary(page: Page, declared: Declared) -> str:
    """The comment above a declaration, as one line."""
    found = (_COMMENT.fullmatch(line) for line in page.lines[declared.region.first : declared.line])
    return " ".join(each["text"].strip() for each in found if each and each["text"].strip())[:300]


def _declared(page: Page, within: Region) -> Iterator[Declared]:
    """What is declared at the outermost level of the region, by counting braces."""
    line = within.first
    while line < within.stop:
        found = _DECLARED.match(page.lines[line])
        if found is None:
            line += 1
            continue
        first, stop = _above(page, line, within.first), _end(page, line, within.stop)
        yield Declared(found["kind"], found["name"], line, Region(first, stop))
        line = stop


def _end(page: Page, line: int, stop: int) -> int:
    """The line behind the brace or semicolon that ends what starts at this line."""
    depth = 0
    for at in range(line, stop):
        text = _QUIET.sub("", page.lines[at])
        depth += text.count("{") - text.count("}")
        if depth <= 0 and ("}" in text or ";" in text):
            return at + 1
    return stop


def _above(page: Page, line: int, lowest: int) -> int:
    while line > lowest and page.lines[line - 1].lstrip().startswith(("//", "/*", "*")):
        line -= 1
    return line
