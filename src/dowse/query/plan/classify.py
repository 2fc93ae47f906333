"""A question goes in, a plan comes out: what it wants, what it names, how else to ask it, what an answer looks like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from dowse.query.plan.mentions import Mention, find_mentions, without
from dowse.query.plan.metadata_questions import metadata_question
from dowse.tokenizer import STOP_WORDS
from dowse.types import QueryType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dowse.ports import LLM

AnswerStyle = Literal["concise", "detailed", "structured", "direct"]

# (type, weight of the dense leg, hits); S3-24.
BY_TYPE: tuple[tuple[QueryType, float, int], ...] = (
    (QueryType.FACTUAL, 0.5, 5),
    (QueryType.CONCEPTUAL, 0.8, 10),
    (QueryType.COMPARISON, 0.7, 15),
    (QueryType.METADATA, 0.5, 5),
)
STYLES: Mapping[QueryType, AnswerStyle] = {  # S3-32
    QueryType.FACTUAL: "concise",
    QueryType.CONCEPTUAL: "detailed",
    QueryType.COMPARISON: "structured",
    QueryType.METADATA: "direct",
}
LLM_TIMEOUT_S = 10.0  # the time for a whole retrieval

_COMPARISON = re.compile(
    r"\b(?:compar(?:e|es|ed|ing|ison|isons)|versus|vs|contrast(?:s|ed|ing)?|differ(?:s|ed)?|differences?|"
    r"distinguish(?:es|ed|ing)?|trade-?offs?|pros\s+and\s+cons|advantages?\s+(?:of|over)|"
    r"(?:better|worse|faster|slower|cheaper|safer|simpler)\s+than|instead\s+of|rather\s+than|"
    r"(?:which|what)\s+(?:one\s+)?is\s+(?:better|worse|faster|slower|cheaper|safer|simpler)|similarit(?:y|ies)\s+between)\b"
)
# A number or a moment is a fact, though it is asked for with "how".
_QUANTITY = re.compile(
    r"\bhow\s+(?:many|much|long|often|old|big|large|small|fast|far|deep|high|late|soon|frequently|expensive|few)\b"
)
_CONCEPTUAL = re.compile(
    r"\b(?:how|why|explain(?:s|ed|ing)?|describe(?:s|d)?|understand(?:ing)?|overview|concepts?|intuition|rationale|"
    r"motivation|reasons?\s+for|walk\s+me\s+through|tell\s+me\s+about|what\s+happens|meaning\s+of|purpose\s+of|idea\s+behind|"
    r"theory|philosophy|architecture)\b"
)
_WORD = re.compile(r"[^\W_]+")


class Plan(msgspec.Struct, frozen=True):
    """What the question wants and names."""

    query_type: QueryType
    answer_style: AnswerStyle
    mentions: tuple[Mention, ...] = ()
    variants: tuple[str, ...] = ()  # the question in other words, without itself
    note: str = ""  # what the language model was asked for and did not give
    decided_by: Literal["request", "rules", "llm"] = "rules"
    other_words: int = 0  # outside the mentions, stop words aside

    @property
    def names(self) -> tuple[str, ...]:
        """What symbols or files in the question are called, each once, in order (C-20)."""
        return tuple(dict.fromkeys(each.name for each in self.mentions if each.name))

    @property
    def identifier_like(self) -> bool:
        """A look-up: names, and at most two words besides (R-30)."""
        return bool(self.names) and self.other_words <= 2


def classify(text: str) -> QueryType:
    """By whole words, mentions aside; a question that no rule knows is factual (C-24)."""
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
    """The request's own type wins, then the language model's, then the rules'.

    The model is asked once for all, and only when variants or a type are wanted from it; it raises
    UnavailableError when it does not answer.
    """
    mentions = find_mentions(text)
    plain = without(text, mentions).lower()
    decided = query_type or _classified(text, plain)
    others = sum(word not in STOP_WORDS for word in _WORD.findall(plain))
    by_rules = Plan(decided, STYLES[decided], mentions, other_words=others)
    if query_type is not None:
        by_rules = replace(by_rules, decided_by="request")
    wants_type = classify_by_llm and query_type is None
    if llm is None or not (expand or wants_type):
        return by_rules
    from dowse.query.plan.expand import consult

    told = consult(llm, text, variants=expand, classify=wants_type, timeout_s=timeout_s)
    asked = replace(by_rules, variants=told.variants, note=told.note)
    if told.query_type is None:
        return asked
    return replace(asked, query_type=told.query_type, answer_style=STYLES[told.query_type], decided_by="llm")


def steered(alpha: float, plan: Plan) -> float:
    """The dense leg's weight after R-30's factors: names call for words, open questions for meaning.

    An option: until an evaluation shows that it helps, the default keeps its weight.
    """
    dense, words = _factors(plan)
    total = alpha * dense + (1 - alpha) * words
    return alpha * dense / total if total else alpha


def _factors(plan: Plan) -> tuple[float, float]:
    if plan.mentions and plan.mentions[-1].kind in ("file", "place") and plan.identifier_like:
        return 0.2, 3.0
    if plan.identifier_like:
        return 0.5, 2.0
    if plan.names:
        return 1.0, 1.5
    if plan.query_type in (QueryType.CONCEPTUAL, QueryType.COMPARISON):
        return 1.5, 0.7
    return 1.0, 1.0
