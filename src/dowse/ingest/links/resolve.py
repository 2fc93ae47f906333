"""References go in; the one chunk that each can only mean comes out, or nothing where several could be meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dowse.filters import Eq, Filter, by_path
from dowse.identity import number_id
from dowse.ingest.links.cards import Card, ImportKey, agreement, card_of, nearest, nearest_folder, only
from dowse.ingest.links.references import Reference, common, joined_path
from dowse.link_names import CODE, FILE, MODULE, SERVICE, SYMBOL, THREAD
from dowse.ports import StoreReader
from dowse.types import ChunkId, Service

MOST_BEARERS = 40  # of one name; chosen: with more, nothing around it tells which is meant
SHORTEST_RECEIVER = 4  # letters; chosen: `db` is in too many names
SHORTEST_SURE_RECEIVER = 6  # likewise, of a method with an everyday name
_ENTRY_WORDS = ["main", "app", "server", "application", "index", "cli", "worker", "handler", "program"]
_ENTRIES = re.compile(r"(?:main|__main__|app|server|index|program|cli|worker)|.*application", re.IGNORECASE)
# Kinds of resources that say most of a service, in this order.
_HOMES = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Chart", "service", "Service")
_NOBODY: tuple[Sequence[Card], frozenset[str]] = ((), frozenset())
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
    bearers: dict[str, dict[str, list[Card]]] = field(default_factory=dict)  # by kind and name
    callables: dict[tuple[str, str], tuple[Sequence[Card], frozenset[str]]] = field(default_factory=dict)
    cards: dict[ChunkId, Card] = field(default_factory=dict)
    files: dict[str, Sequence[_Place]] = field(default_factory=dict)  # by document
    entries: dict[str, Card | None] = field(default_factory=dict)  # by service, where its code begins
    homes: dict[str, Card | None] = field(default_factory=dict)  # by service, where it is declared

    def learn(self, references: Iterable[Reference]) -> None:
        """Look up all names of a batch at once."""
        wanted: dict[str, set[str]] = {}
        for each in references:
            for kind, name in _keys(each):
                if name not in self.bearers.setdefault(kind, {}):
                    wanted.setdefault(kind, set()).add(name)
        found = {kind: self._few(kind, names) for kind, names in wanted.items()}
        missing = {chunk for named in found.values() for few in named.values() for chunk in few} - self.cards.keys()
        self.cards.update((each, card_of(chunk)) for each, chunk in self.reader.get(missing).items())
        for kind, named in found.items():
            for name, few in named.items():
                self.bearers[kind][name] = [self.cards[each] for each in few if each in self.cards]

    def _few(self, kind: str, names: set[str]) -> dict[str, list[ChunkId]]:
        """By name, the chunks that bear it; none where there are many."""
        found: dict[str, list[ChunkId]] = {name: [] for name in names}
        for each in self.reader.named(kind, names):
            if each.name in found:  # in the case it is written in
                found[each.name].append(each.chunk_id)
        return {name: few if len(few) <= MOST_BEARERS else [] for name, few in found.items()}

    def meet(self, cards: Iterable[Card]) -> None:
        """Chunks that are at hand: others will speak of them, and need not read them again."""
        self.cards.update((card.id, card) for card in cards)

    def of(self, reference: Reference, around: Around) -> Card | None:
        """The chunk that is meant; it may be the one that speaks."""
        if reference.kind == SYMBOL:
            return self._call(reference, around) if reference.relation == "calls" else self._symbol(reference, around)
        if reference.kind == MODULE:
            return self._module(reference, around)
        if reference.kind == FILE:
            return self._file(reference, around)
        if reference.kind == THREAD:
            return self._root(reference, around)
        return self._entry(reference.name) if reference.kind == SERVICE else self._code(reference, around)

    # --- symbols ----------------------------------------------------------------------------------------

    def _call(self, reference: Reference, around: Around) -> Card | None:
        """Whose function is called. Calls within a file are its reader's business."""
        own = around.card
        named, documents = self._callable(reference.name, own.family)
        if not named or own.document_id in documents:
            return None
        spelled = reference.spelled.split(".")
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

    def _callable(self, name: str, family: str) -> tuple[Sequence[Card], frozenset[str]]:
        """Who bears a name in a family of languages, and in which documents."""
        candidates = self._candidates(SYMBOL, name)
        if not candidates:  # most calls are of what is not in the index
            return _NOBODY
        if (name, family) not in self.callables:
            named = [each for each in candidates if each.family == family]
            self.callables[name, family] = (named, frozenset(each.document_id for each in named))
        return self.callables[name, family]

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

    def _candidates(self, kind: str, name: str) -> Sequence[Card]:
        return self.bearers[kind].get(name, ()) if kind in self.bearers else ()


def _keys(reference: Reference) -> list[tuple[str, str]]:
    """The names that a reference needs to know the bearers of."""
    if reference.kind != MODULE:
        return [(reference.kind, reference.name)] if reference.kind != SERVICE else []
    parts = reference.spelled.rstrip("/").split("/")
    keys = [(MODULE, reference.name), (SYMBOL, parts[-1])]
    return [*keys, (MODULE, parts[-2])] if len(parts) > 1 else keys


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
