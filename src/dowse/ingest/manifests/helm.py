"""Helm charts: chunks of values and of templates, which need not be YAML before rendering.

A template is cut at its `---` lines, and a pattern finds the kind and name of its resource. A chart has the name of its
folder: that is Helm's rule, and a template does not hold the name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from dowse.ingest.chunking.document import ChunkSpan, trail
from dowse.ingest.chunking.pack import windows
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.ingest.manifests.yaml_parts import Region, TextLines, marked_regions, parts
from dowse.ingest.services.facts import config_facts, environment_facts
from dowse.types import ServiceFact

_KIND = re.compile(r"^kind:[ \t]*[\"']?(?P<kind>[A-Za-z]+)", re.MULTILINE)
_NAME = re.compile(r"^metadata:[ \t]*\n(?:[ \t]*(?:#.*|\{\{.*)?\n)*[ \t]+name:[ \t]*(?P<name>.+)$", re.MULTILINE)
_CHART = re.compile(r"\.Chart\.Name|\.Release\.Name|fullname|\.name\"")
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


def template_pieces(page: TextLines, path: str) -> Iterator[ChunkSpan]:
    chart = chart_of(path) if "/templates/" in f"/{path}" else ""
    for region in marked_regions(page):
        yield from _resource(page, region, chart)


def _resource(page: TextLines, region: Region, chart: str) -> Iterator[ChunkSpan]:
    start, stop = page.span(region)
    text = page.text[start:stop]
    kind = found["kind"] if (found := _KIND.search(text)) else ""
    name = _template_name(text, chart)
    title = f"{kind} {name}".strip() if kind else ""
    facts = (
        (ServiceFact("declares", chart, kind),) if chart and kind in ("Deployment", "StatefulSet", "Service") else ()
    )
    whole = stop - start <= page.whole_chars
    for number, span in enumerate([(start, stop)] if whole else windows(page.text, (start, stop), page.budget)):
        yield ChunkSpan(
            span,
            title or chart,
            symbol_name=(name or None) if kind else None,
            symbol_kind=kind or None,
            qualified_name=f"{kind}/{name}" if kind and name else None,
            service_name=chart or None,
            facts=facts if number == 0 else (),
        )


def _template_name(text: str, chart: str) -> str:
    """Return the name of the rendered resource, "" where the template does not show it."""
    found = _NAME.search(text)
    if found is None:
        return ""
    if plain := _PLAIN.fullmatch(found["name"].strip()):
        return plain["name"]
    return chart if _CHART.search(found["name"]) else ""


def is_chart(name: str, root: Node | None) -> bool:
    return name == "chart.yaml" and root is not None and bool(root.text_at("name"))


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
    cut = parts(page, page.all, root)
    facts = list(_values_facts(root, chart)) if chart else []
    stops = [page.text.count("\n", 0, part.span[1]) for part in cut]
    for part, (first, stop) in zip(cut, pairwise([0, *stops]), strict=True):
        last = part is cut[-1]
        own = tuple(fact for line, fact in facts if first <= line < stop or (last and line >= stop))
        yield ChunkSpan(
            part.span, trail(title, *part.path), symbol_kind="values", service_name=chart or None, facts=own
        )


def _values_facts(root: Node, chart: str) -> Iterator[tuple[int, ServiceFact]]:
    """Return line and fact of every address; outside of variables only addresses of known services count."""
    waiting: list[tuple[str, Node, bool]] = [("", root, False)]
    while waiting:
        name, node, environment = waiting.pop()
        if node.kind == "text":
            find = environment_facts if environment else config_facts
            yield from ((node.first, fact) for fact in find(chart, [(name, node.text)]))
        elif node.kind == "list":
            waiting += [(item.text_at("name") or name, item.get("value") or item, environment) for item in node.items]
        else:
            for key, value in node.members():
                waiting.append((key, value, environment or key.lower() in _ENVIRONMENT))
