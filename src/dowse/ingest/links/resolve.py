"""Resolution of references: the one chunk that a reference means, or None if several chunks fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

import msgspec

from dowse.filters import Eq, Filter, by_path
from dowse.identity import number_id
from dowse.ingest.links.cards import Card, ImportKey, agreement, card_of, nearest, nearest_folder, only
from dowse.ingest.links.references import TargetReference, common, joined_path
from dowse.link_names import CODE, FILE, MODULE, SERVICE, SYMBOL, THREAD
from dowse.ports import StoreReader
from dowse.types import ChunkId, Service

MOST_NAMED = 40  # chunks of one name; chosen: with more, no context decides between them
SHORTEST_RECEIVER = 4  # letters; chosen: `db` is part of too many names
SHORTEST_SURE_RECEIVER = 6  # likewise, for a method with a common name
_ENTRY_WORDS = ["main", "app", "server", "application", "index", "cli", "worker", "handler", "program"]
_ENTRIES = re.compile(r"(?:main|__main__|app|server|index|program|cli|worker)|.*application", re.IGNORECASE)
# Kinds of resources that declare a service, the most specific first.
_HOMES = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Chart", "service", "Service")
_NOBODY: tuple[Sequence[Card], frozenset[str]] = ((), frozenset())
_SLUG = re.compile(r"[^\w -]")


class MentionContext(msgspec.Struct, frozen=True):
    """Chunk with a reference, and its surroundings that help to resolve it."""

    card: Card
    imports: frozenset[ImportKey] = frozenset()  # of the whole file
    services: frozenset[str] = frozenset()  # that the chunk names or belongs to


@dataclass
class TargetResolver:
    """Lookup of names in batches, with a cache for one run of the linker."""

    reader: StoreReader
    services: Mapping[str, Service]
    cards: dict[ChunkId, Card] = field(default_factory=dict)
    named: dict[tuple[str, str], list[Card]] = field(default_factory=dict)  # by kind and name
    callables: dict[tuple[str, str], tuple[Sequence[Card], frozenset[str]]] = field(default_factory=dict)
    files: dict[str, list[tuple[Card, range, str]]] = field(default_factory=dict)  # chunks, lines, anchors by document
    entries: dict[str, Card | None] = field(default_factory=dict)  # first chunk of the code, by service
    homes: dict[str, Card | None] = field(default_factory=dict)  # declaration, by service

    def load(self, references: Iterable[TargetReference]) -> None:
        """Look up all names of a batch at once."""
        wanted: dict[str, set[str]] = {}
        for each in references:
            for kind, name in _keys(each):
                if (kind, name) not in self.named:
                    wanted.setdefault(kind, set()).add(name)
        found: dict[tuple[str, str], list[ChunkId]] = {(kind, name): [] for kind in wanted for name in wanted[kind]}
        for kind, names in wanted.items():
            for row in self.reader.named(kind, names):
                if (kind, row.name) in found:  # in the same case
                    found[kind, row.name].append(row.chunk_id)
        few = {key: ids if len(ids) <= MOST_NAMED else [] for key, ids in found.items()}
        missing = {each for ids in few.values() for each in ids} - self.cards.keys()
        self.cards.update((each, card_of(chunk)) for each, chunk in self.reader.get(missing).items())
        for key, ids in few.items():
            self.named[key] = [self.cards[each] for each in ids if each in self.cards]

    def of(self, reference: TargetReference, context: MentionContext) -> Card | None:
        """Resolve a reference; its target may be the chunk itself."""
        if reference.kind == SYMBOL and reference.relation == "calls":
            return self._call(reference, context)
        return self._by_kind[reference.kind](reference, context)

    @cached_property
    def _by_kind(self) -> dict[str, Callable[[TargetReference, MentionContext], Card | None]]:
        return {
            SYMBOL: self._symbol, MODULE: self._module, FILE: self._file, THREAD: self._root, CODE: self._code,
            SERVICE: self._entry,
        }  # fmt: skip

    def _call(self, reference: TargetReference, context: MentionContext) -> Card | None:
        """Find the called function. The reader of a file resolves calls within it."""
        own = context.card
        named, documents = self._callable(reference.name, own.family)
        if not named or own.document_id in documents:
            return None
        spelled = reference.spelled.split(".")
        qualified = [each for each in named if each.is_qualified(spelled)] if reference.exact else []
        if qualified:
            return only(qualified) or nearest(qualified, context.services)
        imported = [each for each in named if not context.imports.isdisjoint(each.import_keys)]
        everyday = common(reference.name)
        if reference.exact and (everyday or not imported) and not _receiver_fits(named, spelled, surely=not imported):
            return None
        if imported:
            return only(imported)
        return only(each for each in named if each.folder == own.folder) or only(named)

    def _callable(self, name: str, family: str) -> tuple[Sequence[Card], frozenset[str]]:
        """Return the chunks of a name in a family of languages, and their documents."""
        candidates = self.named.get((SYMBOL, name))
        if not candidates:  # as for most calls
            return _NOBODY
        if (name, family) not in self.callables:
            named = [each for each in candidates if each.family == family]
            self.callables[name, family] = (named, frozenset(each.document_id for each in named))
        return self.callables[name, family]

    def _symbol(self, reference: TargetReference, context: MentionContext) -> Card | None:
        named = [each for each in self.named.get((SYMBOL, reference.name), ()) if each.corpus_type.startswith("CODE")]
        if "." in reference.spelled:
            named = [each for each in named if each.is_qualified(reference.spelled.split("."))]
        elif reference.name.isalpha() and reference.name.islower():  # a word: it must be the name of the chunk
            named = [each for each in named if each.symbol_name == reference.name]
        elsewhere = [each for each in named if each.document_id != context.card.document_id]
        return only(elsewhere) or nearest(elsewhere, context.services)

    def _module(self, reference: TargetReference, context: MentionContext) -> Card | None:
        """Find the file that an import names, or the symbol in it."""
        own, path = context.card, reference.spelled
        if path.startswith("."):
            joined = joined_path(own.folder, path)
            return None if joined is None else self._at(joined.split("/"), own, whole=True)
        parts = path.strip("/").split("/")
        found = self._at(parts, own, whole=False)
        if found is not None or len(parts) == 1:
            return found
        found = self._at(parts[:-1], own, whole=False)  # `import module.symbol`
        if found is None:
            return None
        inside = (each for each in self.named.get((SYMBOL, parts[-1]), ()) if each.document_id == found.document_id)
        return only(inside) or found

    def _at(self, parts: Sequence[str], own: Card, *, whole: bool) -> Card | None:
        """Find the file whose path, without extension, ends with these parts; the longest agreement wins."""
        best: list[Card] = []
        most = len(parts) if whole else min(2, len(parts))
        for each in self.named.get((MODULE, parts[-1]), ()):
            if each.family != own.family or each.document_id == own.document_id:
                continue
            agreed = max(agreement(parts, place) for place in each.places)
            if agreed >= most:
                best = [*best, each] if agreed == most else [each]
                most = agreed
        return only(best) or nearest_folder(best, own)

    def _file(self, reference: TargetReference, context: MentionContext) -> Card | None:
        own = context.card
        found = self.named.get((FILE, reference.name), ())
        joined = joined_path(own.folder, reference.spelled)
        exact = [each for each in found if each.path == joined and each.source == own.source]
        bare = reference.spelled.lstrip("./")
        ending = [each for each in found if each.path == bare or each.path.endswith("/" + bare)]
        meant = only(exact) or only(ending) or only(each for each in ending if each.path == bare)
        if meant is None or meant.document_id == own.document_id:
            return None
        return self._within(meant, reference)

    def _within(self, first: Card, reference: TargetReference) -> Card:
        """Find the section of a file by line or anchor; else return its first chunk."""
        if reference.line is None and not reference.anchor:
            return first
        if first.document_id not in self.files:
            self.files[first.document_id] = [
                (card_of(each), range(each.start_line or 0, (each.end_line or 0) + 1), _slug(each.section_path or ""))
                for each in self.reader.document_chunks(first.document_id)
                if each.level == "chunk"
            ]
        for card, lines, anchor in self.files[first.document_id]:
            if reference.line in lines or (reference.anchor and anchor == reference.anchor.lower()):
                return card
        return first

    def _root(self, reference: TargetReference, context: MentionContext) -> Card | None:
        """Find the first message of a thread, if it is in another file."""
        thread = [each for each in self.named.get((THREAD, reference.name), ()) if each.timestamp]
        first = min(thread, key=attrgetter("timestamp", "id"), default=None)
        return None if first is None or first.document_id == context.card.document_id else first

    def _code(self, reference: TargetReference, context: MentionContext) -> Card | None:
        """Find the page that explains a code; else the only place in the program with it."""
        named = self.named.get((CODE, reference.name), ())
        found = [each for each in named if each.document_id != context.card.document_id]
        return only(each for each in found if each.corpus_type.startswith("DOC")) or only(found)

    def _entry(self, reference: TargetReference, _: MentionContext) -> Card | None:
        """Find the entry point of a service: a file named main, app, server … with the shortest path."""
        service = reference.name
        if service not in self.entries:
            code = Eq("corpus_type", "CODE_LOGIC")
            found = self._entries((Eq("service_name", service), code)) or self._entries(
                (by_path(f"**/{service}/**", f"{service}/**"), code)
            )
            self.entries[service] = min(
                found, key=lambda each: (each.path.count("/"), each.path, each.start_line), default=None
            )
        return self.entries[service]

    def _entries(self, where: Filter) -> list[Card]:
        numbers = self.reader.search_words("bm25_code", _ENTRY_WORDS, 100, where).ids.tolist()
        cards = map(card_of, self.reader.get([number_id(each) for each in numbers]).values())
        return [each for each in cards if _ENTRIES.fullmatch(each.stem) and not each.is_test]

    def declared(self, service: str) -> Card | None:
        """Find the declaration of a service: its workload before its network resources."""
        if service not in self.homes:
            found = map(card_of, self.reader.get(self.services[service].chunk_ids).values())
            self.homes[service] = min(found, key=_home_order, default=None)
        return self.homes[service]


def _keys(reference: TargetReference) -> list[tuple[str, str]]:
    """Return the names to look up for a reference."""
    if reference.kind != MODULE:
        return [(reference.kind, reference.name)] if reference.kind != SERVICE else []
    parts = reference.spelled.rstrip("/").split("/")
    keys = [(MODULE, reference.name), (SYMBOL, parts[-1])]
    return [*keys, (MODULE, parts[-2])] if len(parts) > 1 else keys


def _receiver_fits(cards: Sequence[Card], spelled: Sequence[str], *, surely: bool) -> bool:
    """Test the receiver of a call: `repository.append` may be that of TimelineRepository.

    `surely`: there is no other evidence, so that `list.append` does not match a LinkedList.
    """
    receiver = spelled[-2].lower().strip("_")
    least = SHORTEST_SURE_RECEIVER if surely and common(spelled[-1]) else SHORTEST_RECEIVER
    owners = {owner.lower() for each in cards for owner in each.owners.get(spelled[-1], ())}
    return len(receiver) >= least and any(receiver in owner for owner in owners)


def _home_order(card: Card) -> tuple[int, str, int]:
    rank = _HOMES.index(card.symbol_kind) if card.symbol_kind in _HOMES else len(_HOMES)
    return rank, card.path, card.start_line


def _slug(section_path: str) -> str:
    """Return the last heading as GitHub spells its anchor."""
    heading = section_path.rpartition(" > ")[2].lstrip("# ")
    return _SLUG.sub("", heading.lower().replace("`", "")).strip().replace(" ", "-")
