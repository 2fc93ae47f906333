"""Reader of Terraform and other HCL files: a chunk for each block.

Blocks are found by lines: one opens at the left margin and ends at a brace there, as the formatter writes them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.manifests.yaml_parts import TextLines, page_of, regions, spans_of
from dowse.ports import SourceFile
from dowse.types import Document

LONGEST_LINE_CHARS = 400  # chosen: no block opens with a longer one
_BLOCK = re.compile(r"(?P<type>[A-Za-z_][\w-]*)(?P<labels>(?:[ \t]+(?:\"[^\"\n]*\"|[\w-]+)){0,4})[ \t]*\{")
_LABEL = re.compile(r"\"([^\"\n]*)\"|([\w-]+)")
_DESCRIPTION = re.compile(r"^\s*description\s*=\s*\"(?P<text>[^\"\n]{1,300})\"", re.MULTILINE)
# What Terraform's own addresses put before the labels, where it is not the type.
_PREFIXES = {"variable": "var", "resource": ""}


def read_hcl(file: SourceFile) -> Document:
    """Read blocks; settings between them are cut by size."""
    text = decode(file.data)
    return build(file, text, _pieces(page_of(text)))


def _pieces(page: TextLines) -> Iterator[ChunkSpan]:
    blocks = [(at, found) for at, line in enumerate(page.lines) if (found := _BLOCK.match(line[:LONGEST_LINE_CHARS]))]
    for region, found in regions(page, page.all, blocks):
        if found is None:
            yield from spans_of(page, region, None)
            continue
        labels = [quoted or plain for quoted, plain in _LABEL.findall(found["labels"])]
        signature = " ".join((found["type"], *labels))
        start, stop = page.span(region)
        described = _DESCRIPTION.search(page.text, start, min(stop, start + page.whole_chars))
        yield from spans_of(
            page,
            region,
            None,
            signature,
            whole=True,
            symbol_name=labels[-1] if labels else found["type"],
            symbol_kind=found["type"],
            qualified_name=_address(found["type"], labels),
            signature=signature,
            summary=described["text"] if described else None,
        )


def _address(kind: str, labels: list[str]) -> str:
    """Return the address in Terraform: `aws_bucket.logs`, `var.region`, `data.aws_ami.base`."""
    prefix = _PREFIXES.get(kind, kind) if labels else kind
    return ".".join((prefix, *labels) if prefix else labels)
