"""Service of each file by its path: the nearest folder above it that is a service.

A folder is a service if a Compose file builds it, if it holds a chart or a Dockerfile, or, with less weight, the
manifest of a package. `NAME/deploy/*.yaml` makes NAME a service if one of these manifests declares that name. Names in
the file itself, as in a Kubernetes manifest, come first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath

import msgspec

from dowse.ingest.manifests.env import env_values, filled
from dowse.ingest.manifests.yaml_nodes import roots_of
from dowse.ingest.sources.content import FileContent, read_content
from dowse.ports import SourceFile

MOST_COMPOSE_FILES = 20  # chosen: a repository has a handful
MOST_COMPOSE_BYTES = 256 * 1024  # chosen
_IMAGE_FILES = ("dockerfile", "containerfile")
_PACKAGE_FILES = frozenset(
    ("package.json", "go.mod", "pyproject.toml", "setup.py", "cargo.toml", "pom.xml", "build.gradle",
     "build.gradle.kts", "gemfile", "mix.exs", "composer.json", "chart.yaml")
)  # fmt: skip
_MANIFEST_FOLDERS = frozenset(("deploy", "deployment", "deployments", "k8s", "kubernetes", "manifests", "kustomize"))
MOST_MANIFESTS = 500  # read to learn the names of services; chosen
# Names of folders that say nothing about the service.
_NO_NAMES = frozenset(("docker", "build", "deploy", "ci", "src", "app", ".devcontainer", ".github", "test", "tests"))


class ServicePlaces(msgspec.Struct, frozen=True):
    """Service names by source and folder."""

    folders: Mapping[tuple[str, str], str]

    def of(self, source: str, path: str) -> str | None:
        folder = dirname(path)
        while folder:
            if found := self.folders.get((source, folder)):
                return found
            folder = dirname(folder)
        return self.folders.get((source, ""))


def service_places(paths: Iterable[tuple[str, str]], roots: Mapping[str, str]) -> ServicePlaces:
    """Find services among pairs of source and path; `roots` are the folders of the sources."""
    names: dict[tuple[str, str], str] = {}
    packages: dict[tuple[str, str], str] = {}
    composes: set[tuple[str, str]] = set()
    manifests: list[tuple[str, str]] = []
    for source, path in paths:
        name = path[path.rfind("/") + 1 :].lower()
        if name in _PACKAGE_FILES:
            packages[source, dirname(path)] = basename(dirname(path))
        elif name in _IMAGE_FILES:
            names[source, dirname(path)] = basename(dirname(path)) or source
        elif _is_compose_name(name):
            composes.add((source, path))
        elif path.endswith((".yaml", ".yml")):
            manifests.append((source, path))
    found = (packages | names).items()
    named = {key: name for key, name in found if name and name.lower() not in _NO_NAMES}
    return ServicePlaces(_deployed(sorted(manifests), roots, named) | named | _built(sorted(composes), roots))


def _is_compose_name(name: str) -> bool:
    return name.endswith((".yml", ".yaml")) and name.startswith(("docker-compose", "compose."))


def _deployed(
    manifests: Iterable[tuple[str, str]], roots: Mapping[str, str], known: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the folders that manifests below them deploy by name."""
    found: dict[tuple[str, str], str] = {}
    left = MOST_MANIFESTS
    for source, path in manifests:
        parts = path.split("/")
        at = next((at for at, part in enumerate(parts[1:-1], start=1) if part.lower() in _MANIFEST_FOLDERS), 0)
        key = (source, "/".join(parts[:at]))
        if not at or key in found or key in known or parts[at - 1].lower() in _NO_NAMES or not left:
            continue
        left -= 1
        content = read_content(os.path.join(roots.get(source, ""), path), MOST_COMPOSE_BYTES, sniff=True)
        name = rf"^\s*name:\s*['\"]?{re.escape(parts[at - 1])}['\"]?\s*$".encode()
        if (
            isinstance(content, FileContent)
            and b"kind:" in content.data
            and re.search(name, content.data, re.MULTILINE)
        ):
            found[key] = parts[at - 1]
    return found


def env_changed(file: str, indexed_s: float) -> bool:
    """Tell whether the `.env` beside a Compose file, which is not indexed itself, has changed since."""
    if not _is_compose_name(os.path.basename(file).lower()):
        return False
    try:
        return os.stat(os.path.join(os.path.dirname(file), ".env")).st_mtime >= indexed_s
    except OSError:
        return False


def _built(composes: list[tuple[str, str]], roots: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return the folders that Compose files build for exactly one service."""
    found: dict[tuple[str, str], set[str]] = {}
    for source, path in composes[:MOST_COMPOSE_FILES]:
        for name, context in _contexts(
            SourceFile(source, path, b"", 0, full_path=os.path.join(roots.get(source, ""), path))
        ):
            folder = normpath(join(dirname(path), context))
            if not folder.startswith("..") and not folder.startswith("/"):
                found.setdefault((source, "" if folder == "." else folder), set()).add(name)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


def _contexts(file: SourceFile) -> Iterator[tuple[str, str]]:
    """Yield services with build folders and folders of Dockerfiles; the reader of a broken file reports it."""
    content = read_content(file.full_path, MOST_COMPOSE_BYTES, sniff=True)
    if not isinstance(content, FileContent):
        return
    root = next(iter(roots_of(content.data.decode("utf-8", "replace"))), None)
    services = root.get("services") if root else None
    values = env_values(file, [".env"]) if services else {}
    for name, service in services.members() if services else ():
        context = filled(service.text_at("build") or service.text_at("build", "context"), values)[0]
        image_file = filled(service.text_at("build", "dockerfile"), values)[0]
        if context and "$" not in context + image_file and "://" not in context:
            yield name, context
            if "/" in image_file:
                yield name, join(context, dirname(image_file))
