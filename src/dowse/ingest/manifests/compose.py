"""A Compose file goes in; a piece for each of its services comes out, with what it says of services."""

from __future__ import annotations

from collections.abc import Iterator

from dowse.ingest.chunking.document import Piece
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import SEPARATOR, Page, Region, parts, regions, whole_or_parts
from dowse.ingest.services.addresses import image_type
from dowse.ingest.services.settings_facts import environment_facts, hosts
from dowse.types import ServiceFact


def is_compose(root: Node | None) -> bool:
    """Its services have an image or are built; nothing of it is a Kubernetes resource."""
    services = root.get("services") if root else None
    if root is None or services is None or services.kind != "map" or root.get("apiVersion"):
        return False
    return any(value.get("image") or value.get("build") or value.get("extends") for _, value in services.members())


def compose_pieces(page: Page, root: Node) -> Iterator[Piece]:
    """What stands before, between and behind the services is cut as it comes."""
    services = next(((key, value) for key, value in root.pairs if key.text == "services"), None)
    if services is None:
        return
    inside = Region(services[0].first, _stop(page, root, services[0].first))
    own = [(key, value) for key, value in services[1].pairs if key.kind == "text"]
    for region, number in regions(page, inside, [key.first for key, _ in own]):
        if number is None:  # up to the line of `services` itself, which alone says nothing
            alone = not any(line.strip() for line in page.lines[: region.first]) and region.stop == region.first + 1
            yield from () if alone else _others(page, Region(0, region.stop), root)
        else:
            yield from _service(page, region, own[number][0].text, own[number][1])
    yield from _others(page, Region(inside.stop, len(page.lines)), root)


def _stop(page: Page, root: Node, first: int) -> int:
    """Where the key behind `services` starts."""
    return min((key.first for key, _ in root.pairs if key.first > first), default=len(page.lines))


def _others(page: Page, region: Region, root: Node) -> Iterator[Piece]:
    if region.first < region.stop:
        yield from (Piece(part.span, SEPARATOR.join(part.path)) for part in parts(page, region, root))


def _service(page: Page, region: Region, name: str, service: Node) -> Iterator[Piece]:
    facts = tuple(_facts(name, service))
    title = f"Compose service {name}"
    image = service.text_at("image") or service.text_at("build") or service.text_at("build", "context")
    for number, part in enumerate(whole_or_parts(page, region, service)):
        yield Piece(
            part.span,
            SEPARATOR.join((title, *part.path)),
            symbol_name=name,
            symbol_kind="service",
            qualified_name=f"services.{name}",
            signature=f"{title} ({image})" if image else title,
            service_name=name,
            calls_out=hosts(facts),
            facts=facts if number == 0 else (),
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
    """As a map or as a list of NAME=value."""
    if node is None:
        return []
    if node.kind == "map":
        return [(key, value.text) for key, value in node.members() if value.kind == "text"]
    pairs = (item.text.partition("=") for item in node.items if item.kind == "text")
    return [(key, value) for key, _, value in pairs]
