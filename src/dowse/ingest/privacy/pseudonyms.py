"""A document goes in; the same document with pseudonyms for people, addresses and telephone numbers comes out.

One person has one pseudonym throughout an index, in every spelling that is known. It is a keyed hash, so nothing has
to be written down to repeat it; the key lies in the index, and whoever has the index can test a guess against it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from dowse.ingest.privacy.rewrite import rewritten
from dowse.types import Document

SHORTEST_NAME_CHARS = 3  # chosen: a shorter one is part of too many other things
FEWEST_DIGITS, MOST_DIGITS = 8, 15  # of a telephone number with its country (ITU-T E.164 has 15 at most)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Accounts that are words as well, and names that begin sentences; they are replaced only where they are addressed:
# `@will`, `will:`. Any other name with a capital is taken for the person.
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


@dataclass(frozen=True)
class Scrubber:
    """Knows some people by all spellings of their names, the full one first."""

    key: bytes
    people: tuple[tuple[str, ...], ...] = ()

    def scrubbed(self, document: Document) -> tuple[Document, Counter[str]]:
        """The document, and how often what was replaced in what is searched: e-mail, phone, name."""
        counts: Counter[str] = Counter()
        left = Counter(chunk.text for chunk in document.chunks if chunk.level == "chunk")  # a parent may say the same
        authors = {chunk.author for chunk in document.chunks if chunk.author}
        spellings = self._spellings | self._of_authors(authors)

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
            text, found = _pattern(present).subn(lambda each: spellings[each[0]], text)
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
        """Pseudonym by spelling. A first name that two people share stands for neither, and gets one of its own."""
        found: dict[str, set[str]] = {}
        for spellings in self.people:
            own = self._pseudonym("person", spellings[0].casefold())
            for name in _parts(spellings):
                found.setdefault(name, set()).add(own)
        return {
            name: next(iter(owners)) if len(owners) == 1 else self._pseudonym("person", name.casefold())
            for name, owners in found.items()
        }

    def _of_authors(self, authors: set[str]) -> dict[str, str]:
        """Whoever signs a document is a person, known from elsewhere or not."""
        return {
            name: self._pseudonym("person", name.casefold())
            for name in authors
            if name not in self._spellings and len(name) >= SHORTEST_NAME_CHARS and not name.startswith("person-")
        }

    def _pseudonym(self, kind: str, what: str) -> str:
        return f"{kind}-{blake2b(what.encode(), key=self.key, digest_size=4).hexdigest()}"


def _parts(spellings: tuple[str, ...]) -> set[str]:
    """All spellings, and the words of the full name by themselves."""
    words = [word for word in spellings[0].split() if word[:1].isupper()] if " " in spellings[0] else []
    return {name for name in (*spellings, *words) if len(name) >= SHORTEST_NAME_CHARS}


def _pattern(names: list[str]) -> re.Pattern[str]:
    """The longest first, so that a full name wins over a part of it."""
    parts = [_addressed(name) for name in sorted(names, key=lambda each: (-len(each), each))]
    return re.compile("|".join(parts))


def _addressed(name: str) -> str:
    escaped = re.escape(name)
    if name in _WORDS:
        return rf"(?<=@){escaped}(?!\w)|(?<!\w){escaped}(?=:)"
    return rf"(?<![\w-]){escaped}(?!\w)"
