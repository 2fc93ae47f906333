"""Helm charts: chunks of values and of templates, which need not be YAML before rendering.

A template is cut at its `---` lines. Dowse fills in plain values and drops all other actions; if the text is a resource
then, it has the facts of one. A chart has the name of its folder: that is Helm's rule, and a template does not hold the
name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec.structs import replace

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.kubernetes import is_kube, resource_facts, selecting_services, service_of
from dowse.ingest.manifests.yaml_nodes import Node, roots_of
from dowse.ingest.manifests.yaml_parts import Region, TextLines, marked_regions, spans_of
from dowse.ingest.services.facts import Setting, config_facts, environment_facts
from dowse.ingest.sources.content import sibling_bytes
from dowse.ports import SourceFile
from dowse.types import ServiceFact

_KIND = re.compile(r"^kind:[ \t]*[\"']?(?P<kind>[A-Za-z]+)", re.MULTILINE)
_NAME = re.compile(r"^metadata:[ \t]*\n(?:[ \t]*(?:#.*|\{\{.*)?\n)*[ \t]+name:[ \t]*(?P<name>.+)$", re.MULTILINE)
_CHART = re.compile(r"\.Chart\.Name|\.Release\.Name|fullname|\.name\"")
_UNKNOWN = "_"
_ALONE = re.compile(r"^[ \t]*_[ \t]*$", re.MULTILINE)
_CONTROL = re.compile(r"-?\s*(?:if|else|end|with|range|define|block|template|/\*|\$\w+\s*:?=)")
_ACTION = re.compile(r"\{\{(?P<code>.*?)\}\}", re.DOTALL)
_VALUE = re.compile(
    r"[-\s]*(?:(?:quote|default\s+\S+|required\s+\"[^\"]*\"|toString)\s+)?\.Values\.(?P<path>[\w.]+)(?:\s*\|.*)?[-\s]*"
)
_PLAIN = re.compile(r"[\"']?(?P<name>[A-Za-z0-9.-]+)[\"']?\s*(?:#.*)?")
# Keys of a chart's values that hold the variables of its containers.
_ENVIRONMENT = frozenset(
    ("env", "environment", "envvars", "extraenv", "extraenvvars", "config", "configmap", "settings")
)


def is_template(path: str, text: str) -> bool:
    return "{{" in text and ("/templates/" in f"/{path}" or bool(re.search(r"^\s*\{\{", text, re.MULTILINE)))


def chart_of(path: str) -> str:
    """Return the folder of the chart that holds a file, "" when there is none."""
    folders = path.split("/")[:-1]
    if "templates" in folders:
        folders = folders[: folders.index("templates")]
    return folders[-1] if folders else ""


def template_pieces(page: TextLines, file: SourceFile) -> Iterator[ChunkSpan]:
    folder, inside, _ = f"/{file.path}".partition("/templates/")
    chart = chart_of(file.path) if inside else ""
    data = sibling_bytes(file, f"{folder}/values.yaml".lstrip("/")) if inside else None
    lines = rendered(page.text, chart, _values(data) if data else None).split("\n")
    cut = [(region, _parsed("\n".join(lines[region.first : region.stop]))) for region in marked_regions(page)]
    names = selecting_services(root for _, root in cut if root)
    for region, root in cut:
        service = service_of(root, names) if root else ""
        yield from _resource(page, region, chart, root, "" if _UNKNOWN in service else service)


def rendered(text: str, chart: str, values: Node | None) -> str:
    """Fill in plain values and the name of the chart, line for line; unknown values become `_`, which is no name."""

    def text_of(action: re.Match[str]) -> str:
        code, lines = action["code"], "\n" * action["code"].count("\n")
        if _CONTROL.match(code):
            return lines
        if values and (found := _VALUE.fullmatch(code)):
            return values.text_at(*found["path"].split(".")) or _UNKNOWN
        return chart if chart and _CHART.search(code) else _UNKNOWN + lines

    return _ALONE.sub("", _ACTION.sub(text_of, text))


@lru_cache(maxsize=4)  # one file is read with each template of its chart
def _values(data: bytes) -> Node | None:
    return _parsed(data.decode("utf-8", "replace"), kube=False)


def _parsed(text: str, *, kube: bool = True) -> Node | None:
    """Return the map of a text, a resource by default; None for other text, whose own reader reports it."""
    root = next(iter(roots_of(text)), None)
    return root if root and root.kind == "map" and (is_kube(root) or not kube) else None


def _resource(page: TextLines, region: Region, chart: str, root: Node | None, service: str) -> Iterator[ChunkSpan]:
    text = page.text[slice(*page.span(region))]
    kind = found["kind"] if (found := _KIND.search(text)) else ""
    name = root.text_at("metadata", "name") if root else ""
    name = _template_name(text, chart) if not name or _UNKNOWN in name else name
    title = f"{kind} {name}".strip() if kind else ""
    facts: tuple[ServiceFact, ...] = ()
    if root and service:
        found_facts = resource_facts(root, service)
        facts = tuple(
            replace(each, place=str(int(each.place) + region.first)) if each.place else each for each in found_facts
        )
    elif chart and kind in ("Deployment", "StatefulSet", "Service"):
        facts = (ServiceFact("declares", chart, kind),)
    yield from spans_of(
        page,
        region,
        None,
        title or chart,
        whole=True,
        facts=facts,
        symbol_name=(name or None) if kind else None,
        symbol_kind=kind or None,
        qualified_name=f"{kind}/{name}" if kind and name else None,
        service_name=service or chart or None,
    )


def _template_name(text: str, chart: str) -> str:
    """Return the name of the rendered resource, "" where the template does not show it."""
    found = _NAME.search(text)
    if found is None:
        return ""
    if plain := _PLAIN.fullmatch(found["name"].strip()):
        return plain["name"]
    return chart if _CHART.search(found["name"]) else ""


def is_chart(name: str, root: Node) -> bool:
    return name == "chart.yaml" and bool(root.text_at("name"))


def chart_pieces(page: TextLines, root: Node) -> Iterator[ChunkSpan]:
    name = root.text_at("name")
    library = root.text_at("type") == "library"
    facts = () if library else (ServiceFact("declares", name, "Chart"),)
    yield ChunkSpan(
        (0, len(page.text)),
        f"Helm chart {name}",
        symbol_name=name,
        symbol_kind="Chart",
        signature=f"{name} {root.text_at('version')}".strip(),
        summary=root.text_at("description") or None,
        service_name=None if library else name,
        facts=facts,
    )


def is_values(name: str) -> bool:
    return name.startswith("values") and name.endswith((".yaml", ".yml"))


def values_pieces(page: TextLines, root: Node, path: str) -> Iterator[ChunkSpan]:
    chart = chart_of(path)
    title = f"Helm values of {chart}" if chart else "Helm values"
    facts = tuple(_values_facts(root, chart)) if chart else ()
    return spans_of(page, page.all, root, title, facts=facts, symbol_kind="values", service_name=chart or None)


def _values_facts(root: Node, chart: str) -> Iterator[ServiceFact]:
    """Return the facts of every address; outside of variables only addresses of known services count."""
    waiting: list[tuple[str, Node, bool]] = [("", root, False)]
    while waiting:
        name, node, environment = waiting.pop()
        if node.kind == "text":
            find = environment_facts if environment else config_facts
            yield from find(chart, [Setting(name, node.text, node.first)])
        elif node.kind == "list":
            waiting += [(item.text_at("name") or name, item.get("value") or item, environment) for item in node.items]
        else:
            for key, value in node.members():
                waiting.append((key, value, environment or key.lower() in _ENVIRONMENT))
