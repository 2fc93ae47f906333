"""Cards: chunks without their text, with the fields that distinguish chunks of the same name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import takewhile

import msgspec

from dowse.link_names import SEPARATORS
from dowse.types import Chunk, ChunkId

ImportKey = tuple[str, str, str]  # folder, module, symbol; "" if unknown

# Languages whose code calls each other by name.
_FAMILIES: Mapping[str, str] = {
    "typescript": "javascript", "tsx": "javascript", "vue": "javascript", "svelte": "javascript",
    "kotlin": "java", "scala": "java", "groovy": "java", "cpp": "c", "objective-c": "c", "elixir": "erlang",
}  # fmt: skip
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|spec|mocks?|fixtures?)(?:[/_.-]|$)", re.IGNORECASE)


class Card(msgspec.Struct, frozen=True, dict=True):
    """Chunk as the linker needs it."""

    id: ChunkId
    document_id: str
    source: str
    path: str
    corpus_type: str
    language: str
    symbol_name: str | None
    symbol_kind: str | None
    names: tuple[str, ...]  # qualified names of all its definitions
    service_name: str | None
    start_line: int
    timestamp: datetime | None

    @cached_property
    def family(self) -> str:
        return _FAMILIES.get(self.language, self.language)

    @cached_property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @cached_property
    def top(self) -> str:
        """First two folders: about the border between programs."""
        return "/".join(self.path.split("/")[:2])

    @cached_property
    def stem(self) -> str:
        return posixpath.basename(self.path).partition(".")[0]

    @cached_property
    def is_test(self) -> bool:
        return _TEST.search(self.path) is not None

    @cached_property
    def services(self) -> frozenset[str]:
        return frozenset((*self.path.split("/"), self.service_name or ""))

    @cached_property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """Path of the file without extension, and path of its folder, which an import may name instead."""
        parts = (*filter(None, self.folder.split("/")), self.stem)
        return (parts, parts[:-1]) if len(parts) > 1 else (parts,)

    @cached_property
    def owners(self) -> dict[str, frozenset[str]]:
        """By name, its possible qualifiers: class, file, folder."""
        around = {posixpath.basename(self.folder), self.stem} - {""}
        found: dict[str, frozenset[str]] = {}
        for name in self.names:
            *before, last = SEPARATORS.split(name)
            found[last] = found.get(last, frozenset()) | {*before, *around}
        return found

    @cached_property
    def import_keys(self) -> frozenset[ImportKey]:
        """Keys of imports that lead here: of the file, of its folder, of each name in it."""
        found: set[ImportKey] = set()
        symbols = ("", *(SEPARATORS.split(name)[-1] for name in self.names))
        for place in self.places:
            before = place[-2] if len(place) > 1 else ""
            for symbol in symbols:
                found |= {("", place[-1], symbol), (before, place[-1], symbol)}
        return frozenset(found)

    def is_qualified(self, spelled: Sequence[str]) -> bool:
        """Test whether the written name, in parts, ends one of its names: `pricing.ZoneBetween`."""
        owners = self.owners.get(spelled[-1])
        return owners is not None and (len(spelled) == 1 or spelled[-2] in owners)


def card_of(chunk: Chunk) -> Card:
    own = chunk.qualified_name or chunk.symbol_name
    names = (own,) if own else ()
    if chunk.defines:
        names = tuple(dict.fromkeys([*names, *[each.qualified_name for each in chunk.defines]]))
    return Card(
        id=chunk.id,
        document_id=chunk.document_id,
        source=chunk.document_source,
        path=chunk.file_path or "",
        corpus_type=chunk.corpus_type,
        language=chunk.language or "",
        symbol_name=chunk.symbol_name,
        symbol_kind=chunk.symbol_kind,
        names=names,
        service_name=chunk.service_name,
        start_line=chunk.start_line or 0,
        timestamp=chunk.timestamp,
    )


def import_keys(paths: Iterable[str]) -> frozenset[ImportKey]:
    """Return the keys of imported paths: each may end in a module, or in a symbol of one."""
    found: set[ImportKey] = set()
    for path in paths:
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        for module, symbol in ((parts, ""), (parts[:-1], parts[-1] if parts else "")):
            if module:
                found.add((module[-2] if len(module) > 1 else "", module[-1], symbol))
    return frozenset(found)


def agreement(parts: Sequence[str], place: Sequence[str]) -> int:
    """Count the equal parts, from the last one backwards."""
    pairs = zip(reversed(parts), reversed(place), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def only(cards: Iterable[Card]) -> Card | None:
    """Return the only card; cards of one document count as one, because a symbol may have several chunks."""
    found = list(cards)
    if len(found) == 1:
        return found[0]
    documents = {each.document_id for each in found}
    return min(found, key=lambda each: (each.start_line, each.id)) if len(documents) == 1 else None


def nearest(cards: Sequence[Card], services: Iterable[str]) -> Card | None:
    """Return the only card of one of the services; else the only one that is not a test."""
    wanted = frozenset(services)
    close = [each for each in cards if not wanted.isdisjoint(each.services)]
    return only(close) or only(each for each in cards if not each.is_test)


def nearest_folder(cards: Sequence[Card], own: Card) -> Card | None:
    """Return the only card in the same folder or program; else the only one of them that is not a test."""
    same = [each for each in cards if each.source == own.source]
    close = [each for each in same if each.folder == own.folder] or [each for each in same if each.top == own.top]
    return only(close) or only(each for each in close if not each.is_test)
