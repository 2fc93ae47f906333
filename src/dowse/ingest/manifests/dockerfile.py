"""A Dockerfile goes in; a Document comes out with a chunk for it, or for each of its stages where it is long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dowse.ingest.chunking.document import Heading, Piece, build, decode, file_name
from dowse.ingest.manifests.yaml_parts import Page, page_of, parts, regions
from dowse.ingest.services.settings_facts import environment_facts
from dowse.ingest.sources.kinds import kind_of
from dowse.ports import SourceFile
from dowse.types import Document, ServiceFact

_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_EXPOSE = re.compile(r"^\s*EXPOSE\s+(?P<ports>[0-9/a-z \t]+)$", re.IGNORECASE | re.MULTILINE)
_ENV = re.compile(r"^\s*ENV\s+(?P<name>\w+)(?:=|\s+)(?P<value>\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class DockerReader:
    """A folder with a Dockerfile is a service: something there is built to run by itself."""

    name: str = "dockerfile"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        return build(file, kind_of(file), text, Heading(file_name(file)), _pieces(page_of(text)))


def _pieces(page: Page) -> Iterator[Piece]:
    stages = [(at, found) for at, line in enumerate(page.lines) if (found := _FROM.match(line.strip()))]
    facts = tuple(_facts(page.text)) if stages else ()
    if len(page.text) <= page.budget.limit_chars or not stages:
        images = ", ".join(found["image"] for _, found in stages)
        for at, part in enumerate(parts(page, page.all, None)):
            yield Piece(part.span, f"Image from {images}" if images else "", facts=facts if at == 0 else ())
        return
    for region, number in regions(page, page.all, [at for at, _ in stages]):
        found = stages[number or 0][1]
        name = found["name"] or found["image"]
        for at, part in enumerate(parts(page, region, None)):
            last = number == len(stages) - 1 and at == 0
            yield Piece(
                part.span,
                f"Stage {name} from {found['image']}",
                symbol_name=name if number is not None else None,
                symbol_kind="stage" if number is not None else None,
                signature=found[0] if number is not None else None,
                facts=facts if last else (),
            )


def _facts(text: str) -> Iterator[ServiceFact]:
    yield ServiceFact("declares", "", "Dockerfile")
    for found in _EXPOSE.finditer(text):
        ports = (word.partition("/")[0] for word in found["ports"].split())
        yield from (ServiceFact("port", "", "", port) for port in ports if port.isdigit())
    yield from environment_facts("", [(found["name"], found["value"].strip("\"'")) for found in _ENV.finditer(text)])
