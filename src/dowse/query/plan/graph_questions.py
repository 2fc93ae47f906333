"""Graph questions: what a query asks about a service or symbol, if calls, definitions or uses answer it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

GraphRelation = Literal["callers", "breaks", "callees", "call", "defined", "used"]
LONGEST_CHARACTERS = 160  # chosen: a longer query asks for more than a relation


class GraphQuestion(msgspec.Struct, frozen=True):
    """A relation and its subject, as the query spells it."""

    asked: GraphRelation
    subject: str
    kind: str = ""  # of subject or answer, as the query calls it: "service", "function"; "" if it does not
    other: str = ""  # the called end of "call"


_SYMBOLS = "functions?|methods?|class(?:es)?|symbols?|structs?|interfaces?|types?|traits?|constants?|variables?|macros?"
_SERVICES = "services?|micro-?services?|components?|apps?|applications?|systems?"
_CALL = (
    r"(?:calls?|uses?|invokes?|depends?\s+(?:up)?on|talks?\s+to|connects?\s+to|relies\s+on|rely\s+on|needs?|consumes?)"
)
_CALLING = r"(?:calling|using|invoking|depending\s+on|talking\s+to|connecting\s+to|relying\s+on)"
_END = r"(?:the\s+|our\s+)?(?P<subject>\S.{0,60}?)"
_OTHER = r"(?:the\s+|our\s+)?(?P<other>\S.{0,60}?)"
_DOWN = (
    r"(?:is|goes|went|were|was)\s+(?:down|offline|unavailable|broken|dead|out|slow)|fails|breaks|dies|crashes|stops|"
    r"has\s+an\s+outage"
)
_KIND = rf"(?P<kind>{_SERVICES}|{_SYMBOLS}|code)"
_LIST = r"(?:(?:who|what)\s+are\s+the\s+|list\s+(?:all\s+|the\s+)*|all\s+|find\s+(?:all\s+)?)?"
_BREAKS = (
    r"(?:breaks|fails|(?:is|gets)\s+(?:affected|impacted)|stops\s+working|goes\s+down|w(?:ill|ould)\s+(?:break|fail))"
)
# Whole queries only: a relation in the middle of a query is part of its topic.
_PATTERNS: tuple[tuple[GraphRelation, str], ...] = (
    ("callers", rf"(?:which|what|who)(?:\s+(?:other\s+)?{_KIND})?\s+{_CALL}\s+{_END}"),
    ("callers", rf"(?:which|what|who)(?:\s+(?:other\s+)?{_KIND})?\s+(?:is|are)\s+{_CALLING}\s+{_END}"),
    ("callers", rf"{_LIST}(?:callers|clients|dependents)\s+of\s+{_END}"),
    ("breaks", rf"what(?:\s+else)?\s+{_BREAKS}\s+(?:when|if)\s+{_END}\s+(?:{_DOWN})"),
    ("breaks", rf"(?:what\s+is\s+the\s+|what's\s+the\s+)?blast\s+radius\s+of\s+{_END}"),
    ("callees", rf"(?:what|which)(?:\s+(?:other\s+)?{_KIND})?\s+(?:does|do)\s+{_END}\s+{_CALL}"),
    ("callees", rf"{_LIST}(?:service\s+)?dependencies\s+of\s+{_END}"),
    ("call", rf"where\s+does\s+{_END}\s+{_CALL}\s+{_OTHER}"),
    ("defined", rf"where\s+(?:is|are|was)\s+{_END}\s+(?:defined|declared)"),
    ("defined", rf"(?:where\s+is\s+|find\s+|show\s+(?:me\s+)?)?(?:the\s+)?definition\s+of\s+{_END}"),
    ("used", rf"where\s+(?:is|are)\s+{_END}\s+(?:used|called|referenced|invoked|instantiated)"),
    ("used", rf"(?:where\s+do\s+we\s+(?:use|call)|{_LIST}(?:usages?|uses)\s+of|{_LIST}references\s+to)\s+{_END}"),
)  # fmt: skip
_FIRST = re.compile(
    r"\s*(?:who|which|what(?:'s)?|where|list|all|find|show|(?:the\s+)?definition|callers|clients|dependents|blast|(?:service\s+)?"
    r"dependencies|usages?|references|uses)\b",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"\b(?:call|use|us(?:ing|age)|invok|depend|talk|connect|rel(?:y|ies)|need|consum|client|break|fail|affect|impact|stops|"
    r"goes\s+down|blast|defin|declar|refer|instantiat)",
    re.IGNORECASE,
)
_PRONOUNS = frozenset({"it", "this", "that", "them", "these", "those", "me", "us"})
_NAMED = rf"(?P<subject>.+?)\s+(?P<kind>{_SERVICES}|{_SYMBOLS})|(?P<front>{_SYMBOLS})\s+(?P<rest>.+)"


def graph_question(text: str) -> GraphQuestion | None:
    """Return the relation that a query asks for; None for any other query, mostly after two quick looks."""
    if len(text) > LONGEST_CHARACTERS or not _FIRST.match(text) or not _RELATION.search(text):
        return None
    asked = " ".join(text.split()).rstrip("?!. ")
    for relation, pattern in _PATTERNS:
        if found := re.fullmatch(pattern, asked, re.IGNORECASE):
            groups = found.groupdict()
            (subject, kind), (other, _) = _name(groups["subject"]), _name(groups.get("other") or "")
            if subject.lower() in _PRONOUNS:
                return None
            return GraphQuestion(relation, subject, kind or _kind(groups.get("kind")), other)
    return None


def _name(subject: str) -> tuple[str, str]:
    """Return a name without quotes and without the kind that the query gives it, and that kind."""
    bare, kind = subject.strip(), ""
    if found := re.fullmatch(_NAMED, bare, re.IGNORECASE):
        bare, kind = found["subject"] or found["rest"], _kind(found["kind"] or found["front"])
    if bare[:1] in "`'\"" and len(bare) > 2 and bare[-1] == bare[0]:
        return bare[1:-1].removesuffix("()"), kind or "symbol"
    return bare.removesuffix("()"), kind or ("symbol" if bare.endswith("()") else "")


def _kind(word: str | None) -> str:
    if not word or word.lower() == "code":
        return ""
    return "service" if re.fullmatch(_SERVICES, word, re.IGNORECASE) else "symbol"
