"""Pseudonyms for people, e-mail addresses and telephone numbers in documents.

One person has one pseudonym in an index, in every known spelling. It is a keyed hash, so that it can be computed again
without a table; the key is in the index, and anyone who has the index can test a guess against it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import msgspec

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.privacy.rewrite import rewritten
from dowse.ingest.sources import git
from dowse.ingest.sources.content import FileContent, held_bytes, read_content
from dowse.ingest.sources.walk import FoundFile
from dowse.ports import Store
from dowse.types import Document

SHORTEST_NAME_CHARS = 3  # chosen: a shorter one is part of too many other things
FEWEST_DIGITS, MOST_DIGITS = 8, 15  # of a telephone number with its country (ITU-T E.164 has 15 at most)

_KEY = "scrub_key"  # stored settings keep the keys of the first version
_SOURCE = "scrub/"
_STARTED = "started"  # some documents have no pseudonyms yet
_KEY_BYTES = 16


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Account names that are also words, and names that begin sentences: replaced only where they are addressed, as in
# `@will` and `will:`. Any other name with a capital counts as the person.
_WORDS = _words(
    "will mark may art bill rob jack max ray guy page rose grace hope joy grant frank dean chase drew gene miles rich"
    " sue pat dash june april august summer sky dawn faith penny ruby sandy jean root admin test user bot dev ops team"
    " api app web data support info security build deploy release service hook Will May June April August"
)
_MAIL = re.compile(
    r"(?<![\w.+%-])(?!git@)[A-Za-z0-9][\w.+%-]{0,63}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}\b"
)
_PHONE = re.compile(
    r"(?<![\w.+/#-])(?:\+[0-9]{1,3}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,4}(?:[ .-]?[0-9]{2,4}){1,5}"
    r"|\([0-9]{3}\) ?[0-9]{3}-[0-9]{4}|[0-9]{3}-[0-9]{3}-[0-9]{4}|0[0-9]{2,4}[ /][0-9]{3,4}[ -]?[0-9]{3,5})(?![\w-])"
)


People = tuple[tuple[str, ...], ...]  # for each person all spellings of the name, the full one first


class Pseudonymizer(msgspec.Struct, frozen=True, dict=True):
    """Replacement of known people, addresses and numbers in documents."""

    key: bytes
    people: People = ()

    def apply(self, document: Document) -> tuple[Document, Counter[str]]:
        """Replace; return the document and the replacements in searchable chunks by kind."""
        counts: Counter[str] = Counter()
        left = Counter(
            chunk.text for chunk in document.chunks if chunk.level == "chunk"
        )  # a parent may hold the same text
        authors = {chunk.author for chunk in document.chunks if chunk.author}
        unknown = (name for name in authors if name not in self._spellings and not name.startswith("person-"))
        spellings = self._spellings | {
            name: self._pseudonym("person", name.casefold()) for name in unknown if len(name) >= SHORTEST_NAME_CHARS
        }

        def change(text: str) -> str:
            counted = left[text] > 0
            left[text] -= 1
            return self._changed(text, spellings, counts if counted else Counter())

        return rewritten(document, change), counts

    def _changed(self, text: str, spellings: Mapping[str, str], counts: Counter[str]) -> str:
        if "@" in text:
            text, found = _MAIL.subn(lambda each: self._pseudonym("mail", each[0].lower()), text)
            counts["e-mail"] += found
        text = _PHONE.sub(lambda each: self._phone(each[0], counts), text)
        present = [name for name in spellings if name in text]
        if present:
            # The longest first, so that a full name wins over a part of it.
            present.sort(key=lambda each: (-len(each), each))
            pattern = re.compile("|".join(map(_addressed, present)))
            text, found = pattern.subn(lambda each: spellings[each[0]], text)
            counts["name"] += found
        return text

    def _phone(self, text: str, counts: Counter[str]) -> str:
        digits = "".join(char for char in text if char.isdigit())
        if not FEWEST_DIGITS <= len(digits) <= MOST_DIGITS:
            return text
        counts["phone"] += 1
        return self._pseudonym("phone", digits)

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Pseudonym by spelling; a first name that two people share gets a pseudonym of its own."""
        found: dict[str, set[str]] = {}
        for spellings in self.people:
            own = self._pseudonym("person", spellings[0].casefold())
            words = spellings[0].split() if " " in spellings[0] else []
            for name in (*spellings, *(word for word in words if word[:1].isupper())):
                if len(name) >= SHORTEST_NAME_CHARS:
                    found.setdefault(name, set()).add(own)
        return {
            name: next(iter(owners)) if len(owners) == 1 else self._pseudonym("person", name.casefold())
            for name, owners in found.items()
        }

    def _pseudonym(self, kind: str, what: str) -> str:
        return f"{kind}-{blake2b(what.encode(), key=self.key, digest_size=4).hexdigest()}"


def _addressed(name: str) -> str:
    escaped = re.escape(name)
    if name in _WORDS:
        return rf"(?<=@){escaped}(?!\w)|(?<!\w){escaped}(?=:)"
    return rf"(?<![\w-]){escaped}(?!\w)"


def people_in(users: Iterable[bytes], roots: Iterable[str], listed: Path | None) -> People:
    """Collect people, sorted, from users.json files, from repositories, and from a list of names."""
    found = {*_listed(listed), *(person for data in users for person in slack_people(data))}
    for root in roots:
        with suppress(UnavailableError):  # no repository, or no git: then no document has an author from it
            found |= {(name,) for name in git.authors(root)}
    return tuple(sorted(found))


def slack_people(data: bytes) -> Iterator[tuple[str, ...]]:
    """Yield the people of a Slack export, without bots."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        return
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or row.get("is_bot") or not isinstance(row.get("profile", {}), dict):
            continue
        profile = row.get("profile", {})
        names = (profile.get("real_name"), row.get("real_name"), profile.get("display_name"), row.get("name"))
        spellings = tuple(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))
        if spellings:
            yield spellings


def _listed(file: Path | None) -> Iterator[tuple[str, ...]]:
    """Read one person a line, with other spellings after commas; `#` starts a comment."""
    if file is None:
        return
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise BadRequestError(f"cannot read the names from {file}: {err}; correct the path of the names file") from err
    for line in lines:
        names = tuple(name.strip() for name in line.partition("#")[0].split(",") if name.strip())
        if names:
            yield names


class PseudonymOptions(msgspec.Struct, frozen=True):
    """Request for pseudonyms: True or False for the sources of this run, None for no change."""

    wanted: bool | None = None
    names: Path | None = None  # file of names


class PseudonymPlan(msgspec.Struct):
    """Pseudonyms of the sources of one run."""

    pseudonymizers: dict[str, Pseudonymizer] = {}
    renewed: set[str] = set()  # sources whose files are all read again
    states: dict[str, str] = {}  # to store when the run is complete

    def apply(self, document: Document) -> tuple[Document, Counter[str]]:
        own = self.pseudonymizers.get(document.source)
        return own.apply(document) if own else (document, Counter())

    def remember(self, store: Store) -> None:
        for source, state in self.states.items():
            store.set_fact(_SOURCE + source, state)


def plan_pseudonyms(
    store: Store, files: Sequence[FoundFile], options: PseudonymOptions, *, partly: bool
) -> PseudonymPlan:
    """Plan a run. `partly`: the walk covers only some files, so that the list of people may be incomplete."""
    plan = PseudonymPlan()
    for source in sorted({file.source.name for file in files}):
        before = store.fact(_SOURCE + source) or ""
        wanted = bool(before) if options.wanted is None else options.wanted
        if not wanted:
            if before:
                plan.renewed.add(source)
                plan.states[source] = ""
            continue
        own = [file for file in files if file.source.name == source]
        roots = {file.repo.root for file in own if file.repo}
        people = people_in(_user_files(own), roots, options.names)
        state = blake2b(repr(people).encode(), digest_size=8).hexdigest()
        plan.pseudonymizers[source] = Pseudonymizer(_key(store), people)
        if before != state and not (partly and before):
            plan.renewed.add(source)
            plan.states[source] = state
            store.set_fact(_SOURCE + source, _STARTED)  # the next run completes an interrupted one
    return plan


def pseudonymizer_of(store: Store, names: Path | None) -> Pseudonymizer | None:
    """Return the pseudonymizer of documents without files; None unless pseudonyms are on for a source of the index."""
    if not any(store.fact(_SOURCE + source.name) for source in store.sources()):
        return None
    return Pseudonymizer(_key(store), people_in((), (), names))


def _key(store: Store) -> bytes:
    """Return the key of the index; create it when it is first needed."""
    known = store.fact(_KEY)
    if known is None:
        known = secrets.token_hex(_KEY_BYTES)
        store.set_fact(_KEY, known)
    return bytes.fromhex(known)


def _user_files(files: Sequence[FoundFile]) -> Iterator[bytes]:
    users = [file for file in files if file.path.rpartition("/")[2].rpartition("!")[2] == "users.json"]
    for file, data in held_bytes(users, max((file.size_bytes for file in users), default=0) + 1):
        if isinstance(data, bytes):
            yield data
        elif data is None:
            read = read_content(file.full_path, file.size_bytes, sniff=False)
            if isinstance(read, FileContent):
                yield read.data
