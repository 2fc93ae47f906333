"""The paths of a source go in; which service each file belongs to comes out, by the nearest folder that is one.

A folder is a service when a Compose file builds it, when it holds a chart or a Dockerfile, or, with less weight, when
it holds the manifest of a package. What a file says of itself, as a Kubernetes manifest does, goes before all this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import basename, dirname, join, normpath

from dowse.errors import BadRequestError
from dowse.ingest.manifests.yaml_nodes import NotYamlError, compose
from dowse.ingest.sources.content import Contents, read_contents

MOST_COMPOSE_FILES = 20  # chosen: a repository has a handful
MOST_COMPOSE_BYTES = 256 * 1024  # chosen
_IMAGE_FILES = ("dockerfile", "containerfile")
_PACKAGE_FILES = frozenset(
    ("package.json", "go.mod", "pyproject.toml", "setup.py", "cargo.toml", "pom.xml", "build.gradle",
     "build.gradle.kts", "gemfile", "mix.exs", "composer.json", "chart.yaml")
)  # fmt: skip
# Folders that hold such files without being what they are named for.
_NO_NAMES = frozenset(("docker", "build", "deploy", "ci", "src", "app", ".devcontainer", ".github", "test", "tests"))


@dataclass(frozen=True)
class ServicePlaces:
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
    """`paths` are pairs of source and path inside it; `roots` says where a source lies, to read its Compose files."""
    names: dict[tuple[str, str], str] = {}
    packages: dict[tuple[str, str], str] = {}
    composes: list[tuple[str, str]] = []
    telling = {pair for pair in paths if _tells(pair[1][pair[1].rfind("/") + 1 :].lower())}
    for source, path in sorted(telling):
        folder, name = dirname(path), basename(path).lower()
        if name in _PACKAGE_FILES and folder:
            packages.setdefault((source, folder), basename(folder))
        elif name in _IMAGE_FILES:
            names.setdefault((source, folder), basename(folder) or source)
        elif _is_compose_name(name):
            composes.append((source, path))
    named = {key: name for key, name in (packages | names).items() if name.lower() not in _NO_NAMES}
    return ServicePlaces(named | _built(composes, roots))


def _tells(name: str) -> bool:
    return name in _PACKAGE_FILES or name in _IMAGE_FILES or _is_compose_name(name)


def _is_compose_name(name: str) -> bool:
    return name.endswith((".yml", ".yaml")) and name.startswith(("docker-compose", "compose."))


def _built(composes: list[tuple[str, str]], roots: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """The folders that Compose files build; one that several services are built from is called by its own name."""
    found: dict[tuple[str, str], set[str]] = {}
    for source, path in composes[:MOST_COMPOSE_FILES]:
        for name, context in _contexts(os.path.join(roots.get(source, ""), path)):
            folder = normpath(join(dirname(path), context))
            if not folder.startswith("..") and not folder.startswith("/"):
                found.setdefault((source, "" if folder == "." else folder), set()).add(name)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


def _contexts(file: str) -> Iterator[tuple[str, str]]:
    """Service and build folder. A file that cannot be read says nothing here; its reader will say why."""
    contents = read_contents(file, MOST_COMPOSE_BYTES, sniff=True)
    if not isinstance(contents, Contents):
        return
    try:
        documents = compose(contents.data.decode("utf-8", "replace"))
    except (NotYamlError, BadRequestError):
        return
    services = documents[0].root.get("services") if documents and documents[0].root else None
    for name, service in services.members() if services else ():
        context = service.text_at("build") or service.text_at("build", "context")
        if context and "$" not in context and "://" not in context:
            yield name, context
