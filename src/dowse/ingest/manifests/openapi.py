"""OpenAPI descriptions: a chunk for each operation and each schema."""

from __future__ import annotations

from collections.abc import Iterator

from dowse.ingest.chunking.document import ChunkSpan, trail
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import Region, TextLines, keyed_regions, spans_of

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
LONGEST_SUMMARY_CHARS = 300  # chosen: a sentence or two


def is_openapi(root: Node) -> bool:
    return bool(root.text_at("openapi") or root.text_at("swagger")) and root.get("paths") is not None


def openapi_pieces(page: TextLines, root: Node) -> Iterator[ChunkSpan]:
    title = root.text_at("info", "title")
    rest: list[Region] = []  # neither operations nor schemas: the title, servers, security
    for region, pair in keyed_regions(page, page.all, root.named()):
        if pair is None or pair[0].text not in ("paths", "components", "definitions"):
            rest.append(region)
            continue
        yield from _rest(page, rest, root, title)
        rest = []
        if pair[0].text != "paths":
            yield from _schemas(page, region, pair[1], title)
            continue
        for inner, path in keyed_regions(page, region, pair[1].named()):
            if path is not None:
                yield from _operations(page, inner, path[0].text, path[1], title)
    yield from _rest(page, rest, root, title)


def _rest(page: TextLines, rest: list[Region], root: Node, title: str) -> Iterator[ChunkSpan]:
    if rest:
        yield from spans_of(page, Region(rest[0].first, rest[-1].stop), root, title)


def _operations(page: TextLines, region: Region, path: str, item: Node, title: str) -> Iterator[ChunkSpan]:
    own = [(key, value) for key, value in item.pairs if key.text in METHODS and value.kind == "map"]
    if not own:
        yield ChunkSpan(page.span(region), trail(title, path))
    for inner, pair in keyed_regions(page, region, own):
        if pair is not None:  # the path's own line belongs to its first operation
            first = region.first if pair is own[0] else inner.first
            yield from _operation(page, Region(first, inner.stop), path, pair, title)


def _operation(page: TextLines, region: Region, path: str, pair: tuple[Node, Node], title: str) -> Iterator[ChunkSpan]:
    operation = pair[1]
    call = f"{pair[0].text.upper()} {path}"
    name = operation.text_at("operationId") or call
    summary = operation.text_at("summary") or operation.text_at("description")
    yield from spans_of(
        page,
        region,
        operation,
        title,
        f"{call} {name}" if name != call else call,
        whole=True,
        symbol_name=name,
        symbol_kind="operation",
        qualified_name=call,
        signature=call,
        summary=summary[:LONGEST_SUMMARY_CHARS] or None,
    )


def _schemas(page: TextLines, region: Region, components: Node, title: str) -> Iterator[ChunkSpan]:
    """Return the schemas by name, also under Swagger's `definitions`; other components are cut by size."""
    holder = next(((key, value) for key, value in components.pairs if key.text == "schemas"), None)
    if holder is None:
        yield from spans_of(page, region, components, title)
        return
    first = holder[0].first
    stop = components.after(first, region.stop)
    for other in (Region(region.first, max(first, region.first)), Region(stop, region.stop)):
        if other.first < other.stop:
            yield from spans_of(page, other, components, title)
    for inner, pair in keyed_regions(page, Region(first, stop), holder[1].named()):
        if pair is None:
            continue
        name, schema = pair[0].text, pair[1]
        yield from spans_of(
            page,
            inner,
            schema,
            title,
            f"schema {name}",
            whole=True,
            symbol_name=name,
            symbol_kind="schema",
            qualified_name=f"schemas.{name}",
            summary=schema.text_at("description")[:LONGEST_SUMMARY_CHARS] or None,
        )
