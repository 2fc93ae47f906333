"""Compose files: a chunk and facts for each service."""

from __future__ import annotations

from collections.abc import Iterator

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import Region, TextLines, keyed_regions, spans_of
from dowse.ingest.services.addresses import image_type
from dowse.ingest.services.facts import environment_facts, hosts
from dowse.types import ServiceFact


def is_compose(root: Node | None) -> bool:
    """Tell whether services have an image or a build; a Kubernetes resource has an `apiVersion`."""
    services = root.get("services") if root else None
    if root is None or services is None or services.kind != "map" or root.get("apiVersion"):
        return False
    return any(value.get("image") or value.get("build") or value.get("extends") for _, value in services.members())


def compose_pieces(page: TextLines, root: Node) -> Iterator[ChunkSpan]:
    """Return the chunks of the services. Text before, between and behind them is cut by size."""
    services = next(((key, value) for key, value in root.pairs if key.text == "services"), None)
    if services is None:
        return
    inside = Region(services[0].first, root.after(services[0].first, len(page.lines)))
    for region, pair in keyed_regions(page, inside, services[1].named()):
        if pair is not None:
            yield from _service(page, region, pair[0].text, pair[1])
            continue
        # Up to the line of `services`, which by itself is not worth a chunk.
        alone = not any(line.strip() for line in page.lines[: region.first]) and region.stop == region.first + 1
        yield from () if alone else spans_of(page, Region(0, region.stop), root)
    if inside.stop < len(page.lines):
        yield from spans_of(page, Region(inside.stop, len(page.lines)), root)


def _service(page: TextLines, region: Region, name: str, service: Node) -> Iterator[ChunkSpan]:
    facts = tuple(_facts(name, service))
    title = f"Compose service {name}"
    image = service.text_at("image") or service.text_at("build") or service.text_at("build", "context")
    yield from spans_of(
        page,
        region,
        service,
        title,
        whole=True,
        facts=facts,
        symbol_name=name,
        symbol_kind="service",
        qualified_name=f"services.{name}",
        signature=f"{title} ({image})" if image else title,
        service_name=name,
        calls_out=hosts(facts),
    )


def _facts(name: str, service: Node) -> Iterator[ServiceFact]:
    yield ServiceFact("declares", name, "Compose", type=image_type(service.text_at("image")))
    if alias := service.text_at("container_name"):
        yield ServiceFact("alias", name, alias)
    yield from environment_facts(name, _environment(service.get("environment")))
    waits_for = service.get("depends_on")
    if waits_for is not None:
        names = [each.text for each in waits_for.items] or [key for key, _ in waits_for.members()]
        yield from (ServiceFact("needs", name, "depends_on", each) for each in names)


def _environment(node: Node | None) -> list[tuple[str, str]]:
    """Return the variables of a map or of a list of NAME=value."""
    if node is None:
        return []
    if node.kind == "map":
        return [(key, value.text) for key, value in node.members() if value.kind == "text"]
    pairs = (item.text.partition("=") for item in node.items if item.kind == "text")
    return [(key, value) for key, _, value in pairs]
