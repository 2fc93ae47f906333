"""Query plan: type, mentioned names, other wordings and answer style of a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from dowse.query.plan.mentions import Mention, find_mentions, without
from dowse.query.plan.metadata_questions import metadata_question
from dowse.types import QueryType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dowse.ports import LLM

AnswerStyle = Literal["concise", "detailed", "structured", "direct"]

# (type, weight of the dense leg, hits) of the `papers` profile.
BY_TYPE: tuple[tuple[QueryType, float, int], ...] = (
    (QueryType.FACTUAL, 0.5, 5),
    (QueryType.CONCEPTUAL, 0.8, 10),
    (QueryType.COMPARISON, 0.7, 15),
    (QueryType.METADATA, 0.5, 5),
)
STYLES: Mapping[QueryType, AnswerStyle] = {
    QueryType.FACTUAL: "concise",
    QueryType.CONCEPTUAL: "detailed",
    QueryType.COMPARISON: "structured",
    QueryType.METADATA: "direct",
}
LLM_TIMEOUT_S = 10.0  # chosen: people wait no longer for a whole search

_COMPARISON = re.compile(
    r"\b(?:compar(?:e|es|ed|ing|ison|isons)|versus|vs|contrast(?:s|ed|ing)?|differ(?:s|ed)?|differences?|"
    r"distinguish(?:es|ed|ing)?|trade-?offs?|pros\s+and\s+cons|advantages?\s+(?:of|over)|"
    r"(?:better|worse|faster|slower|cheaper|safer|simpler)\s+than|instead\s+of|rather\s+than|"
    r"(?:which|what)\s+(?:one\s+)?is\s+(?:better|worse|faster|slower|cheaper|safer|simpler)|similarit(?:y|ies)\s+between)\b"
)
# "how many" and "how long" ask for a fact.
_QUANTITY = re.compile(
    r"\bhow\s+(?:many|much|long|often|old|big|large|small|fast|far|deep|high|late|soon|frequently|expensive|few)\b"
)
_CONCEPTUAL = re.compile(
    r"\b(?:how|why|explain(?:s|ed|ing)?|describe(?:s|d)?|understand(?:ing)?|overview|concepts?|intuition|rationale|"
    r"motivation|reasons?\s+for|walk\s+me\s+through|tell\s+me\s+about|what\s+happens|meaning\s+of|purpose\s+of|idea\s+behind|"
    r"theory|philosophy|architecture)\b"
)


class Plan(msgspec.Struct, frozen=True):
    """Type, mentions and variants of a query."""

    query_type: QueryType
    answer_style: AnswerStyle
    mentions: tuple[Mention, ...] = ()
    variants: tuple[str, ...] = ()  # other wordings of the query
    note: str = ""  # what the language model did not deliver
    decided_by: Literal["request", "rules", "llm"] = "rules"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of symbols and files in the query, each once, in order."""
        return tuple(dict.fromkeys(each.name for each in self.mentions if each.name))


def classify(text: str) -> QueryType:
    """Return the query type by rules over whole words, mentions aside; factual if no rule matches."""
    return _classified(text, without(text, find_mentions(text)).lower())


def _classified(text: str, plain: str) -> QueryType:
    if metadata_question(text) is not None:
        return QueryType.METADATA
    if _COMPARISON.search(plain):
        return QueryType.COMPARISON
    if _CONCEPTUAL.search(_QUANTITY.sub("", plain)):
        return QueryType.CONCEPTUAL
    return QueryType.FACTUAL


def plan(
    text: str,
    *,
    query_type: QueryType | None = None,
    llm: LLM | None = None,
    expand: int = 0,
    classify_by_llm: bool = False,
    timeout_s: float = LLM_TIMEOUT_S,
) -> Plan:
    """Return the plan. The type of the request overrides that of the language model, which overrides the rules.

    The model is called once, only for variants or a type, and raises UnavailableError if it does not answer.
    """
    mentions = find_mentions(text)
    plain = without(text, mentions).lower()
    decided = query_type or _classified(text, plain)
    by_rules = Plan(decided, STYLES[decided], mentions)
    if query_type is not None:
        by_rules = replace(by_rules, decided_by="request")
    wants_type = classify_by_llm and query_type is None
    if llm is None or not (expand or wants_type):
        return by_rules
    from dowse.query.plan.expand import consult

    reply = consult(llm, text, variants=expand, classify=wants_type, timeout_s=timeout_s)
    asked = replace(by_rules, variants=reply.variants, note=reply.note)
    if reply.query_type is None:
        return asked
    return replace(asked, query_type=reply.query_type, answer_style=STYLES[reply.query_type], decided_by="llm")
