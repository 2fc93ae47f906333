"""A YAML file goes in; a Document comes out with a chunk for each resource, service, job, operation or section.

What a file is shows in what it says, not in its name: a Kubernetes manifest has a kind, a Compose file has services
with images. What is no YAML is cut by its lines; only what would cost too much to read is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dowse.ingest.chunking.document import Heading, Piece, build, decode, file_name
from dowse.ingest.manifests.ci import ci_pieces, is_ci
from dowse.ingest.manifests.compose import compose_pieces, is_compose
from dowse.ingest.manifests.helm import chart_pieces, is_chart, is_template, is_values, template_pieces, values_pieces
from dowse.ingest.manifests.kubernetes import document_regions, is_kube, kube_pieces
from dowse.ingest.manifests.openapi import is_openapi, openapi_pieces
from dowse.ingest.manifests.yaml_nodes import Node, NotYamlError, YamlDocument, compose
from dowse.ingest.manifests.yaml_parts import SEPARATOR, Page, Region, page_of, parts
from dowse.ingest.services.settings_facts import config_facts
from dowse.ingest.sources.kinds import DEPLOY, Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import Document, ServiceFact


@dataclass(frozen=True)
class YamlReader:
    """Reads manifests, charts, Compose files, pipelines, API descriptions and any other YAML."""

    name: str = "yaml"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        page = page_of(text)
        kind, pieces = _recognised(file, page)
        return build(file, kind, text, Heading(file_name(file)), pieces)


def _recognised(file: SourceFile, page: Page) -> tuple[Kind, Iterator[Piece]]:
    """The kind, corrected by what the file says, and its pieces."""
    kind, name = kind_of(file), file_name(file).lower()
    deploy = kind if kind.own else replace(kind, corpus_type=DEPLOY)
    if is_template(file.path, page.text):
        return deploy, template_pieces(page, file.path)
    try:
        documents = compose(page.text)
    except NotYamlError:
        documents = []
    if not documents:  # or comments alone
        return kind, _by_lines(page)
    root = documents[0].root
    if is_chart(name, root) and root:
        return deploy, chart_pieces(page, root)
    if any(is_kube(each.root) for each in documents):
        return deploy, kube_pieces(page, documents)
    if is_values(name) and root:
        return deploy, values_pieces(page, root, file.path)
    if root is not None and len(documents) == 1:
        if is_compose(root):
            return deploy, compose_pieces(page, root)
        if is_openapi(root):
            return kind, openapi_pieces(page, root)
        if is_ci(root):
            return deploy, ci_pieces(page, root)
    return kind, _settings(page, documents)


def _by_lines(page: Page) -> Iterator[Piece]:
    """At `---` lines, then wherever the usual size asks for it."""
    marks = [at for at, line in enumerate(page.lines) if line.startswith("---")]
    for first, stop in zip([0, *(at + 1 for at in marks)], [*marks, len(page.lines)], strict=True):
        if first < stop:
            yield from (Piece(part.span) for part in parts(page, Region(first, stop), None))


def _settings(page: Page, documents: Sequence[YamlDocument]) -> Iterator[Piece]:
    """Any other YAML: cut at its keys, each part told the keys that lead to it."""
    for region, root in document_regions(page, documents):
        facts = [fact for fact in config_facts("", _pairs(root))] if root else []
        for number, part in enumerate(parts(page, region, root)):
            yield Piece(part.span, SEPARATOR.join(part.path), facts=_within(page, part.span, facts, first=number == 0))


def _pairs(root: Node) -> Iterator[tuple[str, str]]:
    """All scalars with the dotted path of keys to them."""
    waiting: list[tuple[str, Node]] = [("", root)]
    while waiting:
        path, node = waiting.pop()
        if node.kind == "text":
            if "://" in node.text:
                yield path, node.text
            continue
        waiting += [(path, item) for item in node.items]
        waiting += [(f"{path}.{key}".strip("."), value) for key, value in node.members()]


def _within(page: Page, span: tuple[int, int], facts: Sequence[ServiceFact], *, first: bool) -> tuple[ServiceFact, ...]:
    """The facts whose address stands in this part of the text; the first part has those that stand in none."""
    text = page.text[span[0] : span[1]]
    return tuple(each for each in facts if each.value.partition(":")[0] in text.lower() or (first and not each.value))
