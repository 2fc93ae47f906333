"""Reader of YAML: a chunk for each resource, service, job, operation or section.

The content shows the kind of a file, not its name: a Kubernetes manifest has a kind, a Compose file has services with
images. Text that is no YAML is cut by its lines; only files that would cost too much are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dowse.ingest.chunking.document import ChunkSpan, build, decode, file_name
from dowse.ingest.manifests.ci import ci_pieces, is_ci
from dowse.ingest.manifests.compose import compose_pieces, is_compose
from dowse.ingest.manifests.helm import chart_pieces, is_chart, is_template, is_values, template_pieces, values_pieces
from dowse.ingest.manifests.kubernetes import document_regions, is_kube, kube_pieces
from dowse.ingest.manifests.kustomize import is_kustomization, kustomize_pieces
from dowse.ingest.manifests.openapi import is_openapi, openapi_pieces
from dowse.ingest.manifests.yaml_nodes import Node, NotYamlError, YamlDocument, compose
from dowse.ingest.manifests.yaml_parts import TextLines, marked_regions, page_of, spans_of
from dowse.ingest.services.facts import Setting, config_facts
from dowse.ingest.sources.kinds import DEPLOY, Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import Document


def read_yaml(file: SourceFile) -> Document:
    """Read manifests, charts, Compose files, pipelines, API descriptions and any other YAML."""
    page = page_of(decode(file.data))
    kind, spans = _recognised(file, page)
    return build(file, page.text, spans, kind=kind)


def _recognised(file: SourceFile, page: TextLines) -> tuple[Kind, Iterator[ChunkSpan]]:
    """Return the kind, corrected by the content, and the chunks."""
    kind, name = kind_of(file), file_name(file).lower()
    deploy = kind if kind.own else replace(kind, corpus_type=DEPLOY)
    if is_template(file.path, page.text):
        return deploy, template_pieces(page, file)
    try:
        documents = compose(page.text)
    except NotYamlError:
        documents = []
    if not documents:  # or comments alone
        return kind, (span for region in marked_regions(page) for span in spans_of(page, region, None))
    root = documents[0].root
    if is_chart(name, root):
        return deploy, chart_pieces(page, root)
    if is_kustomization(name, root):
        return deploy, kustomize_pieces(page, root, file)
    if any(is_kube(each.root) for each in documents):
        return deploy, kube_pieces(page, documents)
    if is_values(name):
        return deploy, values_pieces(page, root, file.path)
    if len(documents) == 1:
        if is_compose(root):
            return deploy, compose_pieces(page, root, file)
        if is_openapi(root):
            return kind, openapi_pieces(page, root)
        if is_ci(root):
            return deploy, ci_pieces(page, root)
    return kind, _settings(page, documents)


def _settings(page: TextLines, documents: Sequence[YamlDocument]) -> Iterator[ChunkSpan]:
    """Cut any other YAML at its keys, each part under the keys that lead to it."""
    for region, root in document_regions(page, documents):
        yield from spans_of(page, region, root, facts=config_facts("", _pairs(root)))


def _pairs(root: Node) -> Iterator[Setting]:
    """Return all addresses with the dotted path of keys to them."""
    waiting: list[tuple[str, Node]] = [("", root)]
    while waiting:
        path, node = waiting.pop()
        if node.kind == "text":
            if "://" in node.text:
                yield Setting(path, node.text, node.first)
            continue
        waiting += [(path, item) for item in node.items]
        waiting += [(f"{path}.{key}".strip("."), value) for key, value in node.members()]
