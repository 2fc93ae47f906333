"""Kubernetes manifests: a chunk and facts for each resource.

A resource belongs to a service: a Service by its own name, a workload by the Service that selects it, else by its
`app` label, else by its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dowse.ingest.chunking.document import ChunkSpan
from dowse.ingest.manifests.yaml_nodes import Node, YamlDocument
from dowse.ingest.manifests.yaml_parts import Region, TextLines, spans_of
from dowse.ingest.services.addresses import PORT_NAMES, image_type
from dowse.ingest.services.facts import Setting, environment_facts, hosts
from dowse.types import ServiceFact

_JOBS = ("Job", "CronJob")
WORKLOADS = frozenset(
    ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Rollout", "ReplicationController", *_JOBS)
)
_APP_LABELS = ("app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance")


def is_kube(root: Node) -> bool:
    return bool(root.text_at("kind") and root.text_at("apiVersion"))


def kube_pieces(page: TextLines, documents: Sequence[YamlDocument]) -> Iterator[ChunkSpan]:
    """Return one chunk a resource; a very long one is cut, and each part has the resource's name."""
    names = selecting_services(document.root for document in documents)
    for region, root in document_regions(page, documents):
        if is_kube(root):
            yield from _resource(page, region, root, names)
        else:  # without the keys that lead to a part
            yield from (ChunkSpan(each.span) for each in spans_of(page, region, root, whole=True))


def document_regions(page: TextLines, documents: Sequence[YamlDocument]) -> Iterator[tuple[Region, Node]]:
    """Return the region of each document, from behind its `---` up to the next one."""
    stops = [max(each.first - 1, 0) for each in documents[1:]] + [len(page.lines)]
    for number, (document, stop) in enumerate(zip(documents, stops, strict=True)):
        above = (line.strip() for line in page.lines[: document.first])
        first = 0 if number == 0 and any(line not in ("", "---") for line in above) else document.first
        if first < stop:
            yield Region(first, stop), document.root


def _resource(page: TextLines, region: Region, root: Node, names: dict[str, str]) -> Iterator[ChunkSpan]:
    kind, name = root.text_at("kind"), _name(root)
    namespace = root.text_at("metadata", "namespace")
    service = service_of(root, names)
    title = f"{kind} {name}".strip()
    facts = resource_facts(root, service)
    yield from spans_of(
        page,
        region,
        root,
        title,
        whole=True,
        facts=facts,
        symbol_name=name or None,
        symbol_kind=kind,
        qualified_name="/".join(each for each in (namespace, kind, name) if each),
        signature=f"{root.text_at('apiVersion')} {title}",
        service_name=service or None,
        calls_out=hosts(facts),
    )


def _name(root: Node) -> str:
    return root.text_at("metadata", "name") or root.text_at("metadata", "generateName")


def _app(root: Node | None, *keys: str) -> str:
    """Return the `app` label among the labels at a path of keys."""
    return next((found for label in _APP_LABELS if root and (found := root.text_at(*keys, label))), "")


def selecting_services(roots: Iterable[Node]) -> dict[str, str]:
    """Return by `app` label the Service of this file that selects it; of several the one with that name."""
    found: dict[str, str] = {}
    for root in roots:
        if root.text_at("kind") == "Service":
            app, name = _app(root, "spec", "selector"), _name(root)
            if app and (app not in found or name == app):
                found[app] = name
    return found


def service_of(root: Node, names: dict[str, str]) -> str:
    """Return the service that a resource belongs to, "" when it belongs to none or to several."""
    kind, name = root.text_at("kind"), _name(root)
    if kind == "Service":
        return name
    if kind in WORKLOADS:
        app = _app(_pods(root), "metadata", "labels") or _app(root, "metadata", "labels") or name
        return names.get(app, app)
    app = (
        _app(root, "metadata", "labels")
        or _app(root, "spec", "podSelector", "matchLabels")
        or _app(root, "spec", "selector", "matchLabels")
        or root.text_at("spec", "scaleTargetRef", "name")
    )
    return names.get(app, app) or (name if name in names.values() else "")


def _pods(root: Node) -> Node | None:
    """Return the template of a workload's pods; a Pod is its own."""
    if root.text_at("kind") == "Pod":
        return root
    return root.get("spec", "jobTemplate", "spec", "template") or root.get("spec", "template")


def resource_facts(root: Node, service: str) -> tuple[ServiceFact, ...]:
    kind, name = root.text_at("kind"), _name(root)
    namespace = root.text_at("metadata", "namespace")
    if kind == "Service":
        return (*_service_facts(root, name, namespace), *_ports(root.get("spec", "ports"), name, "port"))
    if kind in WORKLOADS:
        return tuple(_workload_facts(root, name, service, namespace))
    if kind == "ConfigMap":
        data = root.get("data")
        pairs = data.members() if data else ()
        return environment_facts(
            configmap(name), [Setting(key, value.text, value.first) for key, value in pairs if value.kind == "text"]
        )
    return ()


def configmap(name: str) -> str:
    """Return the owner of a ConfigMap's settings until a workload uses it."""
    return f"configmap/{name}"


def _service_facts(root: Node, name: str, namespace: str) -> Iterator[ServiceFact]:
    yield ServiceFact("declares", name, "Service", namespace=namespace)
    if (app := _app(root, "spec", "selector")) and app != name:
        yield ServiceFact("alias", name, app)
    if outside := root.text_at("spec", "externalName"):
        yield ServiceFact("alias", name, outside.lower())


def _workload_facts(root: Node, name: str, service: str, namespace: str) -> Iterator[ServiceFact]:
    pods = _pods(root)
    spec = pods.get("spec") if pods else None
    containers = [item for key in ("containers", "initContainers") for item in items(spec, key)]
    stores = {image_type(item.text_at("image")) for item in items(spec, "containers")} - {""}
    kind = root.text_at("kind")
    yield ServiceFact("declares", service, kind, type=min(stores, default=""), namespace=namespace)
    if name and name != service:
        yield ServiceFact("alias", service, name)
    for container in containers:
        variables = items(container, "env")
        yield from environment_facts(service, settings_of(variables))
        yield from _ports(container.get("ports"), service, "containerPort")
        taken = [each.text_at("valueFrom", "configMapKeyRef", "name") for each in variables]
        taken += [each.text_at("configMapRef", "name") for each in items(container, "envFrom")]
        yield from (ServiceFact("takes", service, configmap(each)) for each in dict.fromkeys(taken) if each)


def settings_of(variables: Sequence[Node]) -> list[Setting]:
    """Return pairs of `name` and `value`, on the line of the name."""
    named = [(each.get("name"), each.text_at("value")) for each in variables]
    return [Setting(name.text, value, name.first) for name, value in named if name and value]


def _ports(ports: Node | None, service: str, key: str) -> Iterator[ServiceFact]:
    """Return the protocol of each port, as far as its name or `appProtocol` shows it."""
    for each in ports.items if ports else ():
        number = each.text_at(key)
        spoken = (each.text_at("appProtocol") or each.text_at("name")).lower()
        if number.isdigit():
            words = spoken.replace(".", "-").split("-")
            kind = next((PORT_NAMES[word] for word in words if word in PORT_NAMES), "")
            yield ServiceFact("port", service, spoken, number, kind)


def items(node: Node | None, key: str) -> tuple[Node, ...]:
    found = node.get(key) if node else None
    return found.items if found else ()
