"""Reader of Dockerfiles: one chunk, or a chunk for each stage of a long one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.manifests.yaml_parts import TextLines, page_of, regions, spans_of
from dowse.ingest.services.facts import Setting, environment_facts
from dowse.ports import SourceFile
from dowse.types import Document, ServiceFact

_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_EXPOSE = re.compile(r"^\s*EXPOSE\s+(?P<ports>[0-9/a-z \t]+)$", re.IGNORECASE | re.MULTILINE)
_ENV = re.compile(r"^\s*ENV\s+(?P<name>\w+)(?:=|\s+)(?P<value>\S+)", re.IGNORECASE | re.MULTILINE)


def read_dockerfile(file: SourceFile) -> Document:
    """Read a Dockerfile. Its folder is a service: an image is built there to run by itself."""
    text = decode(file.data)
    return build(file, text, _pieces(page_of(text)))


def _pieces(page: TextLines) -> Iterator[ChunkSpan]:
    stages = [(at, found) for at, line in enumerate(page.lines) if (found := _FROM.match(line.strip()))]
    facts = tuple(_facts(page.text)) if stages else ()
    if len(page.text) <= page.budget.limit_chars or not stages:
        images = ", ".join(found["image"] for _, found in stages)
        yield from spans_of(page, page.all, None, f"Image from {images}" if images else "", facts=facts)
        return
    for region, started in regions(page, page.all, stages):
        found = started or stages[0][1]  # arguments stand above the first stage
        name = found["name"] or found["image"]
        fields: dict[str, Any] = {"symbol_name": name, "symbol_kind": "stage", "signature": found[0]} if started else {}
        own = facts if started is stages[-1][1] else ()
        yield from spans_of(page, region, None, f"Stage {name} from {found['image']}", facts=own, **fields)


def _facts(text: str) -> Iterator[ServiceFact]:
    yield ServiceFact("declares", "", "Dockerfile")
    for found in _EXPOSE.finditer(text):
        ports = (word.partition("/")[0] for word in found["ports"].split())
        yield from (ServiceFact("port", "", "", port) for port in ports if port.isdigit())
    for found in _ENV.finditer(text):
        line = text.count("\n", 0, found.start("name"))
        yield from environment_facts("", [Setting(found["name"], found["value"].strip("\"'"), line)])
