"""Metadata questions: the field and the document that a query asks for, if it asks for metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

MetadataField = Literal["author", "published", "changed", "title", "doi", "works"]


class MetadataQuestion(msgspec.Struct, frozen=True):
    """A field and its subject: a person for "works", else a document."""

    asked: MetadataField
    subject: str
    kind: str = ""  # of document, as the query calls it: "paper", "runbook"; "" if it does not


_WORD = re.compile(r"[a-z]+")
LONGEST_CHARACTERS = 300  # chosen: a longer query asks for more than a field
# No "result": a query about results asks for content.
_KINDS = (
    "adr|article|book|channel|chapter|config|design doc|doc|document|documentation|file|guide|manuscript|memo|module|"
    "note|page|paper|piece|post|postmortem|preprint|publication|readme|report|rfc|runbook|script|spec|specification|"
    "study|survey|thesis|thread|transcript|work|write-?up"
)
_WORKS = rf"(?:[\w-]+\s+)?(?P<kind>{_KINDS})s?"
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
# Whole queries only: "who wrote" in the middle of another query asks for something else.
_PATTERNS: tuple[tuple[MetadataField, str], ...] = (
    ("works", rf"{_PLEASE}(?:which|what|list|all|any|the)?\s*(?:all\s+|the\s+)*{_WORKS}\s+{_BY}\s+{_PERSON}"),
    ("works", rf"{_PLEASE}(?:which|what)\s+{_WORKS}\s+(?:did|has|have)\s+{_PERSON}\s+{_WRITE}"),
    ("works", rf"{_PLEASE}what\s+(?:did|has)\s+{_PERSON}\s+{_WRITE}"),
    ("author", rf"{_PLEASE}who\s+(?:has\s+)?(?:{_WROTE}|{_WRITTEN})\s+(?P<subject>.+)"),
    ("author", rf"{_PLEASE}who\s+(?:is|are|was|were)\s+the\s+(?:authors?|writers?)\s+(?:of|behind)\s+(?P<subject>.+)"),
    ("author", rf"{_PLEASE}(?:by\s+)?whom?\s+(?:is|was)\s+(?P<subject>.+?)\s+{_WRITTEN}(?:\s+by)?"),
    ("author", rf"{_WHAT}(?:names?\s+of\s+the\s+)?authors?{_OF}"),
    ("changed", rf"{_PLEASE}when\s+(?:was|were|has|have|had|did)\s+(?P<subject>.+?)\s+(?:been\s+)?"
                rf"(?:last|most\s+recently)\s+(?:been\s+)?(?:{_CHANGED}|change|update)"),
    ("changed", rf"{_PLEASE}when\s+(?:was|were)\s+(?P<subject>.+?)\s+{_CHANGED}(?:\s+last)?"),
    ("changed", rf"{_WHAT}(?:date\s+of\s+the\s+)?(?:last|latest|most\s+recent)\s+"
                r"(?:change|update|edit|modification|modified|changed|updated)(?:\s+(?:date|time))?\s+"
                r"(?:of|to|for|in)\s+(?P<subject>.+)"),
    ("published", rf"{_PLEASE}(?:when|in\s+(?:what|which)\s+year|what\s+year)\s+(?:was|were)\s+(?P<subject>.+?)\s+"
                  r"(?:first\s+)?(?:published|written|released|drafted|dated|created)"),
    ("published", rf"{_WHAT}(?:publication\s+(?:date|year)|(?:date|year)\s+of\s+publication){_OF}"),
    ("title", rf"{_WHAT}title{_OF}"),
    ("doi", rf"{_WHAT}(?:doi|digital\s+object\s+identifier){_OF}"),
)  # fmt: skip


# Words of which a query for the field has at least one: a look at them saves compiling the patterns (10 ms).
_WORDS_OF: Mapping[str, frozenset[str]] = {
    asked: frozenset(words.split())
    for asked, words in (
        ("works", "by from write written publish published author authored coauthored drafted"),
        ("author", "wrote writes written authored coauthored published drafted penned author authors writer writers"),
        ("changed", "last latest recent recently changed updated modified edited revised touched"),
        ("published", "published written released drafted dated created publication"),
        ("title", "title"),
        ("doi", "doi digital"),
    )
}


_ANY_WORD = frozenset().union(*_WORDS_OF.values())


def metadata_question(text: str) -> MetadataQuestion | None:
    """Return the field and subject that a query asks for; None if it asks for something else."""
    plain = " ".join(text.split()).strip(" ?!.")
    if len(plain) > LONGEST_CHARACTERS:
        return None
    words = set(_WORD.findall(plain.lower().replace("co-a", "coa")))
    if words.isdisjoint(_ANY_WORD):
        return None
    for asked, pattern in _PATTERNS:
        if words.isdisjoint(_WORDS_OF[asked]):
            continue
        match = re.fullmatch(pattern, plain, re.IGNORECASE)
        if match is None:
            continue
        subject, kind = _subject(match["subject"])
        if not subject or (asked == "works" and not _is_person(subject)):
            continue
        named = match.groupdict().get("kind") or kind
        return MetadataQuestion(asked, subject, named.lower())
    return None


def _subject(text: str) -> tuple[str, str]:
    """Split off article, kind and quotes: `the paper "On Retries"` is On Retries, a paper."""
    bare = re.sub(r"^(?:the|this|that|our|an?)\s+", "", text.strip(), flags=re.IGNORECASE)
    opening = re.match(
        rf"({_KINDS})s?\s+(?:(?:called|titled|named|on|about|for|with\s+the\s+title)\s+)?", bare, re.IGNORECASE
    )
    kind = opening[1] if opening else ""
    if opening:
        bare = bare[opening.end() :]
        bare = re.sub(r"^(?:the|an?)\s+", "", bare, flags=re.IGNORECASE)
    else:
        closing = re.search(rf"\s+({_KINDS})s?$", bare, re.IGNORECASE)
        kind = closing[1] if closing else ""
    return bare.strip(" \t\"'`“”‘’«»"), kind


def _is_person(subject: str) -> bool:
    """Return whether the words may be a name: with a capital, or at most two; not "the last incident"."""
    words = subject.split()
    return words[0].lower() not in {"the", "a", "an", "our", "this", "that", "my", "last", "which"} and (
        any(word[:1].isupper() for word in words) or len(words) <= 2
    )
