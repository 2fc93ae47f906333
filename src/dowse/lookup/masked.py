"""Masked secrets of an index: where each stands and what kind it is, by the text around its mask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from dowse.filters import Contains
from dowse.identity import number_id
from dowse.ingest.privacy.secrets import MASK

if TYPE_CHECKING:
    from dowse.store.snapshot import Snapshot

_NAME = re.compile(
    r"(?P<name>[\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|key)\d{0,2})"
    r"[\"'\]]{0,3}\s*(?::=|=>|[:=]|\s)[^:=]{0,40}$",
    re.IGNORECASE,
)
_BATCH = 500  # chunks that are read at once; chosen


class MaskedPlace(msgspec.Struct, frozen=True):
    """Line with a masked secret."""

    place: str  # as source/path:line
    kind: str


def masked_places(reader: Snapshot) -> Iterator[MaskedPlace]:
    """Yield the masks of all stored chunks by place; a text that writes `[masked]` itself counts, too."""
    ids = [number_id(each) for each in reader.ids[reader.selection((Contains("text", MASK),)).mask].tolist()]
    seen: set[MaskedPlace] = set()
    for start in range(0, len(ids), _BATCH):
        for chunk in reader.get(ids[start : start + _BATCH]).values():
            for offset, line in enumerate(chunk.text.split("\n")):
                for before in line.split(MASK)[:-1]:
                    number = "" if chunk.start_line is None else f":{chunk.start_line + offset}"
                    seen.add(MaskedPlace(f"{chunk.source_uri}{number}", _kind(before, line)))
    yield from sorted(seen, key=lambda each: _natural(each.place))


def _kind(before: str, line: str) -> str:
    if named := _NAME.search(before):
        return named["name"]
    if "PRIVATE KEY" in before:
        return "private key"
    if re.search(r"://[^\s/]*:$", before):
        return "password in an address"
    return "private key" if not line.replace(MASK, "").strip(" \t\"'+,\\n") else "token"


def _natural(place: str) -> tuple[str, int]:
    path, _, number = place.rpartition(":")
    return (path, int(number)) if number.isdecimal() else (place, 0)
