"""Compose files: a chunk and facts for each service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.env import env_values, filled
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import Region, TextLines, keyed_regions, spans_of
from dowse.ingest.services.addresses import image_type
from dowse.ingest.services.facts import Setting, environment_facts, hosts
from dowse.ports import SourceFile
from dowse.types import ServiceFact


def is_compose(root: Node) -> bool:
    """Tell whether services have an image or a build; a Kubernetes resource has an `apiVersion`."""
    services = root.get("services")
    if services is None or services.kind != "map" or root.get("apiVersion"):
        return False
    return any(value.get("image") or value.get("build") or value.get("extends") for _, value in services.members())


def compose_pieces(page: TextLines, root: Node, file: SourceFile) -> Iterator[ChunkSpan]:
    """Return the chunks of the services. Text before, between and behind them is cut by size."""
    services = next(((key, value) for key, value in root.pairs if key.text == "services"), None)
    if services is None:
        return
    values = env_values(file, [".env"])
    inside = Region(services[0].first, root.after(services[0].first, len(page.lines)))
    for region, pair in keyed_regions(page, inside, services[1].named()):
        if pair is not None:
            settings = _settings(pair[1], file, values)
            yield from _service(page, region, pair, settings)
            continue
        # Up to the line of `services`, which by itself is not worth a chunk.
        alone = not any(line.strip() for line in page.lines[: region.first]) and region.stop == region.first + 1
        yield from () if alone else spans_of(page, Region(0, region.stop), root)
    if inside.stop < len(page.lines):
        yield from spans_of(page, Region(inside.stop, len(page.lines)), root)


def _service(
    page: TextLines, region: Region, pair: tuple[Node, Node], settings: Sequence[Setting]
) -> Iterator[ChunkSpan]:
    name, service = pair[0].text, pair[1]
    facts = tuple(_facts(pair[0], service, settings))
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


def _facts(key: Node, service: Node, settings: Sequence[Setting]) -> Iterator[ServiceFact]:
    name = key.text
    kind = image_type(service.text_at("image"))
    yield ServiceFact("declares", name, "Compose", type=kind, place=str(key.first + 1))
    if alias := service.text_at("container_name"):
        yield ServiceFact("alias", name, alias)
    yield from environment_facts(name, settings)
    waits_for = service.get("depends_on")
    if waits_for is not None:
        done = "service_completed_successfully"  # a job that is over
        named = [key for key, value in waits_for.named() if value.text_at("condition") != done]
        for each in (*waits_for.items, *named):
            yield ServiceFact("needs", name, "depends_on", each.text, place=str(each.first + 1))


def _settings(service: Node, file: SourceFile, values: Mapping[str, str]) -> list[Setting]:
    """Return the variables of a service, with the values that Compose takes from environment files."""
    node, files = service.get("environment"), service.get("env_file")
    paths = [files, *files.items] if files else []
    taken = env_values(file, [each.text or each.text_at("path") for each in paths])
    found = {name: Setting(name, value, files.first if files else 0, hidden=True) for name, value in taken.items()}
    own: list[tuple[str, str | None, int]] = []
    for key, value in node.members() if node else ():
        own.append((key, (value.text or None) if value.kind == "text" else "", value.first))
    for item in node.items if node else ():
        key, equals, text = item.text.partition("=")
        own.append((key, text if equals else None, item.first))
    for name, written, line in own:
        text, hidden = (values.get(name, ""), True) if written is None else filled(written, values)
        found[name] = Setting(name, text, line, hidden)
    return list(found.values())
