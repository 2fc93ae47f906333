"""An OpenAPI description goes in; a piece for each operation and each schema comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dowse.ingest.chunking.document import Piece
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import SEPARATOR, Page, Region, parts, regions, whole_or_parts

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
LONGEST_SUMMARY_CHARS = 300  # chosen: a sentence or two


def is_openapi(root: Node | None) -> bool:
    return (
        root is not None and bool(root.text_at("openapi") or root.text_at("swagger")) and root.get("paths") is not None
    )


def openapi_pieces(page: Page, root: Node) -> Iterator[Piece]:
    title = root.text_at("info", "title")
    own = [(key, value) for key, value in root.pairs if key.kind == "text"]
    rest: list[Region] = []
    for region, number in regions(page, page.all, [key.first for key, _ in own]):
        key, value = own[number] if number is not None else (None, None)
        if key is None or value is None or key.text not in ("paths", "components", "definitions"):
            rest.append(region)
            continue
        yield from _head(page, rest, root, title)
        rest = []
        if key.text == "paths":
            yield from _paths(page, region, value, title)
        else:
            yield from _schemas(page, region, value, title)
    yield from _head(page, rest, root, title)


def _head(page: Page, rest: Sequence[Region], root: Node, title: str) -> Iterator[Piece]:
    """What is neither an operation nor a schema: the title, servers, security."""
    if rest:
        region = Region(rest[0].first, rest[-1].stop)
        yield from (Piece(part.span, SEPARATOR.join((title, *part.path))) for part in parts(page, region, root))


def _paths(page: Page, region: Region, paths: Node, title: str) -> Iterator[Piece]:
    own = [(key, value) for key, value in paths.pairs if key.kind == "text"]
    for inner, number in regions(page, region, [key.first for key, _ in own]):
        if number is not None:
            yield from _operations(page, inner, own[number][0].text, own[number][1], title)


def _operations(page: Page, region: Region, path: str, item: Node, title: str) -> Iterator[Piece]:
    own = [(key, value) for key, value in item.pairs if key.text in METHODS and value.kind == "map"]
    found = list(regions(page, region, [key.first for key, _ in own]))
    for inner, number in found:
        if number is None:  # the path's own line, which belongs to its first operation; or it has none
            if not own:
                yield Piece(page.span(inner), f"{title}{SEPARATOR}{path}")
            continue
        first = region.first if number == 0 else inner.first
        yield from _operation(page, Region(first, inner.stop), path, own[number], title)


def _operation(page: Page, region: Region, path: str, own: tuple[Node, Node], title: str) -> Iterator[Piece]:
    method, operation = own[0].text.upper(), own[1]
    call = f"{method} {path}"
    name = operation.text_at("operationId") or call
    summary = operation.text_at("summary") or operation.text_at("description")
    for part in whole_or_parts(page, region, operation):
        yield Piece(
            part.span,
            SEPARATOR.join(each for each in (title, f"{call} {name}" if name != call else call, *part.path) if each),
            symbol_name=name,
            symbol_kind="operation",
            qualified_name=call,
            signature=call,
            summary=summary[:LONGEST_SUMMARY_CHARS] or None,
        )


def _schemas(page: Page, region: Region, components: Node, title: str) -> Iterator[Piece]:
    """Schemas by name, also under Swagger's `definitions`; the other components are cut as they come."""
    holder = next(((key, value) for key, value in components.pairs if key.text == "schemas"), None)
    if holder is None:
        yield from (Piece(p.span, SEPARATOR.join((title, *p.path))) for p in parts(page, region, components))
        return
    before = Region(region.first, max(holder[0].first, region.first))
    stop = min((key.first for key, _ in components.pairs if key.first > holder[0].first), default=region.stop)
    for other in (before, Region(stop, region.stop)):
        if other.first < other.stop:
            yield from (Piece(p.span, SEPARATOR.join((title, *p.path))) for p in parts(page, other, components))
    own = [(key, value) for key, value in holder[1].pairs if key.kind == "text"]
    for inner, number in regions(page, Region(holder[0].first, stop), [key.first for key, _ in own]):
        if number is None:
            continue
        key, value = own[number]
        for part in whole_or_parts(page, inner, value):
            yield Piece(
                part.span,
                SEPARATOR.join((title, f"schema {key.text}", *part.path)),
                symbol_name=key.text,
                symbol_kind="schema",
                qualified_name=f"schemas.{key.text}",
                summary=value.text_at("description")[:LONGEST_SUMMARY_CHARS] or None,
            )
