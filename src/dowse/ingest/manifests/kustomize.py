"""Kustomizations: one chunk, with facts of the patches and ConfigMaps inside.

A patch in a file of its own is read as the resource it resembles. A JSON patch holds no name, so its kustomization
has the facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname, join, normpath

from msgspec.structs import replace

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.env import env_values
from dowse.ingest.manifests.kubernetes import configmap, is_kube, items, resource_facts, service_of, settings_of
from dowse.ingest.manifests.yaml_nodes import Node, roots_of
from dowse.ingest.manifests.yaml_parts import TextLines, spans_of
from dowse.ingest.services.facts import Setting, environment_facts
from dowse.ingest.sources.content import sibling_bytes
from dowse.ports import SourceFile
from dowse.types import ServiceFact

_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")


def is_kustomization(name: str, root: Node) -> bool:
    """Tell by the file's name, which kustomize requires; both keys of a resource are optional."""
    return root.kind == "map" and name in ("kustomization.yaml", "kustomization.yml")


def kustomize_pieces(page: TextLines, root: Node, file: SourceFile) -> Iterator[ChunkSpan]:
    kind = root.text_at("kind") or "Kustomization"
    signature = f"{root.text_at('apiVersion')} {kind}".strip()
    facts = (*_generated(root, file), *_patched(root, file))
    yield from spans_of(page, page.all, root, kind, whole=True, facts=facts, symbol_kind=kind, signature=signature)


def _generated(root: Node, file: SourceFile) -> Iterator[ServiceFact]:
    """Yield facts of the ConfigMaps that it generates."""
    for each in items(root, "configMapGenerator"):
        pairs = ((*item.text.partition("="), item.first) for item in items(each, "literals"))
        settings = [Setting(key, value, line) for key, _, value, line in pairs]
        for path in items(each, "envs"):
            taken = env_values(file, [path.text]).items()
            settings += [Setting(name, value, path.first, hidden=True) for name, value in taken]
        yield from environment_facts(configmap(each.text_at("name")), settings)


def _patched(root: Node, file: SourceFile) -> Iterator[ServiceFact]:
    for each in (item for key in _PATCHES for item in items(root, key)):
        inline = each if each.kind == "text" else each.get("patch")
        target = each.text_at("target", "name")
        if inline is not None and "\n" in inline.text:
            yield from _facts(inline.text, target, inline.first + 2)
        elif path := each.text_at("path"):  # all facts are on the line of the path
            data = sibling_bytes(file, normpath(join(dirname(file.path), path)))
            facts = _facts(data.decode("utf-8", "replace"), target, 1) if data and target else ()
            yield from (replace(fact, place=str(each.first + 1)) for fact in facts)


def _facts(text: str, target: str, first: int) -> Iterator[ServiceFact]:
    """Yield the settings in a patch, a part of a resource or a list of changes, that starts on a line from 1."""
    for root in roots_of(text):
        if is_kube(root):
            found = resource_facts(root, target or service_of(root, {}))
            kept = [fact for fact in found if fact.kind in ("sets", "takes")]
        else:
            values = [value for change in root.items if (value := change.get("value"))]
            variables = [each for value in values for each in (value, *value.items)]
            kept = list(environment_facts(target, settings_of(variables))) if target else []
        yield from (replace(fact, place=str(int(fact.place or 1) - 1 + first)) for fact in kept)
