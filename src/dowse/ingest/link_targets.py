"""References go in; the one chunk that each can only mean comes out, or nothing where several could be meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dowse.filters import Eq, Filter, by_path
from dowse.identity import number_id
from dowse.ingest.link_cards import Card, ImportKey, agreement, card_of, nearest, nearest_folder, only
from dowse.ingest.link_refs import Reference, common, joined_path
from dowse.names import CODE, FILE, MODULE, SERVICE, SYMBOL, THREAD
from dowse.ports import StoreReader
from dowse.types import ChunkId, Name, Service

MOST_BEARERS = 40  # of one name; chosen: with more, nothing around it tells which is meant
SHORTEST_RECEIVER = 4  # letters; chosen: `db` is in too many names
SHORTEST_SURE_RECEIVER = 6  # likewise, of a method with an everyday name
_ENTRY_WORDS = ["main", "app", "server", "application", "index", "cli", "worker", "handler", "program"]
_ENTRIES = re.compile(r"(?:main|__main__|app|server|index|program|cli|worker)|.*application", re.IGNORECASE)
# Kinds of resources that say most of a service, in this order.
_HOMES = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Chart", "service", "Service")
_SLUG = re.compile(r"[^\w -]")


@dataclass(frozen=True)
class Around:
    """The chunk that speaks, and what of its surroundings helps to tell whom it means."""

    card: Card
    imports: frozenset[ImportKey] = frozenset()  # of the whole file
    services: frozenset[str] = frozenset()  # that the chunk names or is part of


@dataclass(frozen=True)
class _Place:
    """A searchable chunk of a file, by its lines and its heading."""

    card: Card
    lines: tuple[int, int]
    anchor: str


@dataclass
class Targets:
    """Looks names up in batches and remembers them; lives for one run of the linker."""

    reader: StoreReader
    services: Mapping[str, Service]
    bearers: dict[tuple[str, str], list[Name]] = field(default_factory=dict)
    cards: dict[ChunkId, Card] = field(default_factory=dict)
    files: dict[str, Sequence[_Place]] = field(default_factory=dict)  # by document
    entries: dict[str, Card | None] = field(default_factory=dict)  # by service, where its code begins
    homes: dict[str, Card | None] = field(default_factory=dict)  # by service, where it is declared

    def learn(self, references: Iterable[Reference]) -> None:
        """Look up all names of a batch at once."""
        wanted: dict[str, set[str]] = {}
        for each in references:
            for kind, name in _keys(each):
                if (kind, name) not in self.bearers:
                    wanted.setdefault(kind, set()).add(name)
        for kind, names in wanted.items():
            for name in names:
                self.bearers[kind, name] = []
            for found in self.reader.named(kind, names):
                if (kind, found.name) in self.bearers:
                    self.bearers[kind, found.name].append(found)
        few = (each for kind, names in wanted.items() for name in names for each in self._few(kind, name))
        missing = {each.chunk_id for each in few} - self.cards.keys()
        self.cards.update((each, card_of(chunk)) for each, chunk in self.reader.get(missing).items())

    def of(self, reference: Reference, around: Around) -> Card | None:
        """The chunk that is meant, unless it is the one that speaks."""
        if reference.kind == SYMBOL:
            found = self._call(reference, around) if reference.relation == "calls" else self._symbol(reference, around)
        elif reference.kind == MODULE:
            found = self._module(reference, around)
        elif reference.kind == FILE:
            found = self._file(reference, around)
        elif reference.kind == THREAD:
            found = self._root(reference, around)
        elif reference.kind == SERVICE:
            found = self._entry(reference.name)
        else:
            found = self._code(reference, around)
        return None if found is None or found.id == around.card.id else found

    # --- symbols ----------------------------------------------------------------------------------------

    def _call(self, reference: Reference, around: Around) -> Card | None:
        """Whose function is called. Calls within a file are its reader's business."""
        own, spelled = around.card, reference.spelled.split(".")
        named = [each for each in self._candidates(SYMBOL, reference.name) if each.family == own.family]
        if not named or any(each.document_id == own.document_id for each in named):
            return None
        qualified = [each for each in named if each.is_qualified(spelled)] if reference.exact else []
        if qualified:
            return only(qualified) or nearest(qualified, around.services)
        imported = [each for each in named if not around.imports.isdisjoint(each.import_keys)]
        everyday = common(reference.name)
        if reference.exact and (everyday or not imported) and not _receiver_fits(named, spelled, surely=not imported):
            return None
        if imported:
            return only(imported)
        return only(each for each in named if each.folder == own.folder) or only(named)

    def _symbol(self, reference: Reference, around: Around) -> Card | None:
        named = [each for each in self._candidates(SYMBOL, reference.name) if each.corpus_type.startswith("CODE")]
        if "." in reference.spelled:
            named = [each for each in named if each.is_qualified(reference.spelled.split("."))]
        elif reference.name.isalpha() and reference.name.islower():  # a word: it must be what the chunk is called
            named = [each for each in named if each.symbol_name == reference.name]
        elsewhere = [each for each in named if each.document_id != around.card.document_id]
        return only(elsewhere) or nearest(elsewhere, around.services)

    # --- files ------------------------------------------------------------------------------------------

    def _module(self, reference: Reference, around: Around) -> Card | None:
        """The file that an import leads to, or the symbol in it."""
        own, path = around.card, reference.spelled
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
        inside = (each for each in self._candidates(SYMBOL, parts[-1]) if each.document_id == found.document_id)
        return only(inside) or found

    def _at(self, parts: Sequence[str], own: Card, *, whole: bool) -> Card | None:
        """The file whose path ends so, without its extension; the longest agreement wins."""
        best: list[Card] = []
        most = len(parts) if whole else min(2, len(parts))
        for each in self._candidates(MODULE, parts[-1]):
            if each.family != own.family or each.document_id == own.document_id:
                continue
            agreed = max(agreement(parts, place) for place in each.places)
            if agreed >= most:
                best = [*best, each] if agreed == most else [each]
                most = agreed
        return only(best) or nearest_folder(best, own)

    def _file(self, reference: Reference, around: Around) -> Card | None:
        own = around.card
        found = self._candidates(FILE, reference.name)
        joined = joined_path(own.folder, reference.spelled)
        exact = [each for each in found if each.path == joined and each.source == own.source]
        bare = reference.spelled.lstrip("./")
        ending = [each for each in found if each.path == bare or each.path.endswith("/" + bare)]
        meant = only(exact) or only(ending) or only(each for each in ending if each.path == bare)
        if meant is None or meant.document_id == own.document_id:
            return None
        return self._within(meant, reference)

    def _within(self, first: Card, reference: Reference) -> Card:
        """The part of a file that a line or anchor means; else its beginning."""
        if reference.line is None and not reference.anchor:
            return first
        if first.document_id not in self.files:
            self.files[first.document_id] = [
                _Place(card_of(each), (each.start_line or 0, each.end_line or 0), _slug(each.section_path or ""))
                for each in self.reader.document_chunks(first.document_id)
                if each.level == "chunk"
            ]
        for place in self.files[first.document_id]:
            if reference.line is not None and place.lines[0] <= reference.line <= place.lines[1]:
                return place.card
            if reference.anchor and place.anchor == reference.anchor.lower():
                return place.card
        return first

    # --- the rest ---------------------------------------------------------------------------------------

    def _root(self, reference: Reference, around: Around) -> Card | None:
        """Where a conversation began: the earliest chunk of its thread, when that is in another file."""
        thread = [
            (each.timestamp, each.id, each) for each in self._candidates(THREAD, reference.name) if each.timestamp
        ]
        first = min(thread, default=(None, "", None))[2]
        return None if first is None or first.document_id == around.card.document_id else first

    def _code(self, reference: Reference, around: Around) -> Card | None:
        """The page that explains a code; else the one place in the program that has it."""
        named = self._candidates(CODE, reference.name)
        found = [each for each in named if each.document_id != around.card.document_id]
        return only(each for each in found if each.corpus_type.startswith("DOC")) or only(found)

    def _entry(self, service: str) -> Card | None:
        """Where the code of a service begins: a file called main, app, server … highest up in its folder."""
        if service not in self.entries:
            code = Eq("corpus_type", "CODE_LOGIC")
            found: list[Card] = []
            for where in ((Eq("service_name", service), code), (by_path(f"**/{service}/**", f"{service}/**"), code)):
                found = found or self._entries(where)
            self.entries[service] = min(found, key=lambda each: (each.path.count("/"), _order(each)), default=None)
        return self.entries[service]

    def _entries(self, where: Filter) -> list[Card]:
        numbers = self.reader.search_words("bm25_code", _ENTRY_WORDS, 100, where).ids.tolist()
        cards = map(card_of, self.reader.get([number_id(each) for each in numbers]).values())
        return [each for each in cards if _ENTRIES.fullmatch(each.stem) and not each.is_test]

    def declared(self, service: str) -> Card | None:
        """Where a service is declared: the workload that runs it, rather than what leads to it."""
        if service not in self.homes:
            found = map(card_of, self.reader.get(self.services[service].chunk_ids).values())
            self.homes[service] = min(found, key=lambda each: (_home_rank(each), _order(each)), default=None)
        return self.homes[service]

    def _candidates(self, kind: str, name: str) -> list[Card]:
        return [self.cards[each.chunk_id] for each in self._few(kind, name) if each.chunk_id in self.cards]

    def _few(self, kind: str, name: str) -> list[Name]:
        found = self.bearers.get((kind, name), [])
        return found if len(found) <= MOST_BEARERS else []


def _keys(reference: Reference) -> list[tuple[str, str]]:
    """The names that a reference needs to know the bearers of."""
    keys = [(reference.kind, reference.name)] if reference.kind != SERVICE else []
    if reference.kind == MODULE:
        parts = reference.spelled.rstrip("/").split("/")
        keys += [(SYMBOL, parts[-1])] + ([(MODULE, parts[-2])] if len(parts) > 1 else [])
    return keys


def _receiver_fits(cards: Sequence[Card], spelled: Sequence[str], *, surely: bool) -> bool:
    """`repository.append` may be that of TimelineRepository: the receiver is often called after its class.

    `surely`: nothing else speaks for it, so that `list.append` is not that of a LinkedList.
    """
    receiver = spelled[-2].lower().strip("_")
    least = SHORTEST_SURE_RECEIVER if surely and common(spelled[-1]) else SHORTEST_RECEIVER
    owners = {owner.lower() for each in cards for owner in each.owners.get(spelled[-1], ())}
    return len(receiver) >= least and any(receiver in owner for owner in owners)


def _home_rank(card: Card) -> int:
    return _HOMES.index(card.symbol_kind) if card.symbol_kind in _HOMES else len(_HOMES)


def _order(card: Card) -> tuple[str, int]:
    return card.path, card.start_line


def _slug(section_path: str) -> str:
    """The last heading, as GitHub spells its anchor."""
    heading = section_path.rpartition(" > ")[2].lstrip("# ")
    return _SLUG.sub("", heading.lower().replace("`", "")).strip().replace(" ", "-")
