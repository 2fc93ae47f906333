"""Metadata questions: the field and the document that a query asks for, if it asks for metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

MetadataField = Literal[
    "author", "published", "changed", "title", "doi", "venue", "keywords", "works", "count", "mentions", "values"
]  # fmt: skip


class MetadataQuestion(msgspec.Struct, frozen=True):
    """A field and its subject: a document, or "" for the one in scope.

    Of a collection: a person for "works" and "count", a term for "mentions", the name of a field for "values".
    """

    asked: MetadataField
    subject: str
    kind: str = ""  # of document, as the query calls it: "paper", "runbook"; "" if it does not
    year: str = ""  # that documents are from


_WORD = re.compile(r"[a-z]+")
_YEARS = re.compile(r"\b(?:19|20)\d\d\b")
LONGEST_CHARACTERS = 300  # chosen: a longer query asks for more than a field
# No "result": a query about results asks for content.
_KINDS = (
    "adr|article|book|channel|chapter|config|design doc|doc|document|documentation|file|guide|manuscript|memo|module|"
    "note|page|paper|piece|post|postmortem|preprint|publication|readme|report|rfc|runbook|script|spec|specification|"
    "study|survey|thesis|thread|transcript|work|write-?up"
)
# Kinds that people sign: "papers by marchetti" asks for a person, "files by name" does not.
_SIGNED = frozenset((
    "adr", "article", "book", "memo", "manuscript", "paper", "postmortem", "preprint", "publication", "report", "rfc",
    "runbook", "study", "survey", "thesis",
))  # fmt: skip
_WORKS = rf"(?:[\w-]+\s+)?(?P<kind>{_KINDS})s"
_PLEASE = (
    r"(?:please\s+|can you\s+|could you\s+|tell me\s+|do you know\s+|show(?:\s+me)?\s+|give(?:\s+me)?\s+|find\s+)*"
)
_WHAT = rf"{_PLEASE}(?:what(?:'s|\s+is|\s+are|\s+was|\s+were)?\s+|which\s+is\s+)?(?:the\s+)?(?:full\s+|exact\s+)?"
_OF = r"\s+(?:of|for|behind|from)\s+(?P<subject>.+)"
_WROTE = r"(?:wrote|writes|authored|co-?authored|published|drafted|penned)"
_WRITTEN = r"(?:written|authored|co-?authored|published|drafted)"
_WRITE = rf"(?:write|publish|author|{_WRITTEN})"
_CHANGED = r"(?:changed|updated|modified|edited|revised|touched)"
_BY = rf"(?:(?:that\s+|which\s+)?(?:are\s+|is\s+|were\s+|was\s+|have been\s+)?(?:{_WRITTEN}\s+)?by|from)"
_PERSON = r"(?P<subject>[^\W\d_][\w.'’-]*(?:\s+[\w.'’-]+){0,4})"
_YEAR = r"(?:(?:(?:that\s+(?:are|were)\s+)?(?:from|of|in|published\s+in|written\s+in)\s+)(?P<year>(?:19|20)\d\d))"
_THERE = (
    r"(?:are\s+there|exist|do\s+we\s+have|are\s+(?:indexed|available|in\s+(?:the|this|our)\s+(?:index|collection)))"
)
_FIELD = r"(?P<subject>authors|years|venues|journals|keywords|corpora|corpus\s+types|kinds\s+of\s+documents)"
_THIS = r"(?P<subject>this|it|that)"
# Whole queries only: "who wrote" in the middle of another query asks for something else.
# Names of a field that are a question by themselves, with a question mark or after "what is the".
_BARE: tuple[tuple[MetadataField, str], ...] = (
    ("author", "authors?"),
    ("published", r"publication\s+(?:date|year)|date\s+of\s+publication"),
    ("title", "title"),
    ("doi", "doi"),
    ("venue", "journal|venue"),
    ("keywords", r"key\s?words"),
)
_PATTERNS: tuple[tuple[MetadataField, str], ...] = (
    ("count", rf"{_PLEASE}how\s+many\s+{_WORKS}(?:\s+{_THERE})?(?:\s+{_YEAR})?(?:\s+{_BY}\s+{_PERSON})?"
              rf"(?:\s+{_THERE})?"),
    ("works", rf"{_PLEASE}(?:which|what|list|all|any|the)?\s*(?:all\s+|the\s+)*{_WORKS}\s+"
              rf"(?:{_BY}\s+{_PERSON}(?:\s+{_YEAR})?|{_YEAR.replace('?P<year>', '?P<alone>')})"),
    ("mentions", rf"{_PLEASE}(?:which|what)\s+{_WORKS}\s+(?:mentions?|refers?\s+to|talks?\s+about)\s+(?P<subject>.+)"),
    ("values", rf"{_PLEASE}(?:which|what)\s+{_FIELD}\s+{_THERE}"),
    ("values", rf"{_PLEASE}list\s+(?:all\s+|the\s+)*(?P<subject>authors|venues|journals)"),
    ("works", rf"{_PLEASE}(?:which|what)\s+{_WORKS}\s+(?:did|has|have)\s+{_PERSON}\s+{_WRITE}"),
    ("works", rf"{_PLEASE}what\s+(?:did|has)\s+{_PERSON}\s+{_WRITE}"),
    ("author", rf"{_PLEASE}who\s+(?:has\s+)?(?:{_WROTE}|{_WRITTEN})\s+(?P<subject>.+)"),
    ("author", rf"{_PLEASE}who\s+(?:is|are|was|were)\s+the\s+(?:authors?|writers?)\s+(?:of|behind)\s+(?P<subject>.+)"),
    ("author", rf"{_PLEASE}(?:by\s+)?whom?\s+(?:is|was)\s+(?P<subject>.+?)\s+{_WRITTEN}(?:\s+by)?"),
    ("author", rf"{_WHAT}(?:names?\s+of\s+the\s+)?authors?{_OF}"),
    ("author", rf"{_PLEASE}who\s+(?:is|are|was|were)\s+the\s+(?:authors?|writers?)"),
    ("changed", rf"{_PLEASE}when\s+(?:was|were|has|have|had|did)\s+(?P<subject>.+?)\s+(?:been\s+)?"
                rf"(?:last|most\s+recently)\s+(?:been\s+)?(?:{_CHANGED}|change|update)"),
    ("changed", rf"{_PLEASE}when\s+(?:was|were)\s+(?P<subject>.+?)\s+{_CHANGED}(?:\s+last)?"),
    ("changed", rf"{_WHAT}(?:date\s+of\s+the\s+)?(?:last|latest|most\s+recent)\s+"
                r"(?:change|update|edit|modification|modified|changed|updated)(?:\s+(?:date|time))?\s+"
                r"(?:of|to|for|in)\s+(?P<subject>.+)"),
    ("published", rf"{_PLEASE}(?:when|in\s+(?:what|which)\s+year|what\s+year)\s+(?:was|were)\s+(?P<subject>.+?)\s+"
                  r"(?:first\s+)?(?:published|written|released|drafted|dated|created)"),
    ("published", rf"{_WHAT}(?:publication\s+(?:date|year)|(?:date|year)\s+of\s+publication){_OF}"),
    ("published", rf"{_PLEASE}when\s+was\s+{_THIS}\s+(?:published|written)"),
    ("title", rf"{_WHAT}title{_OF}"),
    ("doi", rf"{_WHAT}(?:doi|digital\s+object\s+identifier){_OF}"),
    ("venue", rf"{_WHAT}(?:journal|venue|conference){_OF}"),
    ("venue", rf"{_PLEASE}(?:where|in\s+(?:which|what)\s+(?:journal|venue|conference))\s+was\s+"
              r"(?P<subject>.+?)\s+published"),
    ("keywords", rf"{_WHAT}key\s?words{_OF}"),
    *(
        (asked, rf"(?:{_PLEASE}what(?:'s|\s+is|\s+are|\s+was|\s+were)\s+the\s+)(?:{names})")
        for asked, names in _BARE
    ),
)  # fmt: skip


_BARE_NAMES = re.compile("|".join(f"(?P<{asked}>{names})" for asked, names in _BARE), re.IGNORECASE)
# Words of which a query for the field has at least one: a look at them saves compiling the patterns (10 ms).
_WORDS_OF: Mapping[str, frozenset[str]] = {
    asked: frozenset(words.split())
    for asked, words in (
        ("count", "many"),
        ("works", "by from year write written publish published author authored coauthored drafted"),
        ("mentions", "mention mentions refer refers talk talks"),
        ("values", "authors years venues journals keywords corpora corpus kinds"),
        ("author", "wrote writes written authored coauthored published drafted penned author authors writer writers"),
        ("changed", "last latest recent recently changed updated modified edited revised touched"),
        ("published", "published written released drafted dated created publication"),
        ("title", "title"),
        ("doi", "doi digital"),
        ("venue", "journal venue conference published"),
        ("keywords", "keywords key"),
    )
}


_ANY_WORD = frozenset().union(*_WORDS_OF.values())
_SCOPE = frozenset(("this", "it", "that", "document"))


def metadata_question(text: str) -> MetadataQuestion | None:
    """Return the field and subject that a query asks for; None if it asks for something else."""
    plain = " ".join(text.split()).strip(" ?!.")
    if len(plain) > LONGEST_CHARACTERS:
        return None
    words = set(_WORD.findall(plain.lower().replace("co-a", "coa")))
    if _YEARS.search(plain):
        words.add("year")
    if words.isdisjoint(_ANY_WORD):
        return None
    if text.rstrip().endswith("?") and (bare := _BARE_NAMES.fullmatch(plain.lower().removeprefix("the "))):
        return MetadataQuestion(next(asked for asked, _ in _BARE if bare[asked]), "")
    for asked, pattern in _PATTERNS:
        if words.isdisjoint(_WORDS_OF[asked]):
            continue
        match = re.fullmatch(pattern, plain, re.IGNORECASE)
        if match is None:
            continue
        found = match.groupdict()
        year = found.get("year") or found.get("alone") or ""
        given = found.get("subject") or ""
        if asked == "works" and (dated := re.fullmatch(rf"(.+?)\s+{_YEAR}", given)):
            given, year = dated[1], dated["year"]
        subject, kind = (given, "") if asked == "values" else _subject(given)
        if asked in ("works", "count") and subject and not _is_person(subject, (found.get("kind") or "paper").lower()):
            continue
        if given and not subject:
            continue
        named = found.get("kind") or kind
        return MetadataQuestion(asked, "" if subject.lower() in _SCOPE else subject, named.lower(), year)
    return None


def _subject(text: str) -> tuple[str, str]:
    """Split off article, kind and quotes: `the paper "On Retries"` is On Retries, a paper."""
    bare = re.sub(r"^(?:the|this|that|our|an?)\s+", "", text.strip(), flags=re.IGNORECASE)
    called = r"(?:(?:called|titled|named|on|about|for|with\s+the\s+title)\s+)?"
    kind = re.match(rf"({_KINDS})s?\s+{called}", bare, re.IGNORECASE)
    if kind:
        bare = re.sub(r"^(?:the|an?)\s+", "", bare[kind.end() :], flags=re.IGNORECASE)
    else:
        kind = re.search(rf"\s+({_KINDS})s?$", bare, re.IGNORECASE)
    return bare.strip(" \t\"'`“”‘’«»"), kind[1] if kind else ""


def _is_person(subject: str, kind: str) -> bool:
    """Return whether the words may be a name: with a capital, or at most two behind a kind that people sign."""
    words = subject.split()
    return words[0].lower() not in {"the", "a", "an", "our", "this", "that", "my", "last", "which"} and (
        any(word[:1].isupper() for word in words) or (len(words) <= 2 and kind in _SIGNED)
    )
