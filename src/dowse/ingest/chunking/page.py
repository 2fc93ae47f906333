"""What a page says of itself goes in: title, headings, front matter; what it is for, and the part of a paper, come out.

The path has been asked before (kinds.py), and is believed; this is for the runbook that lies in `docs/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dowse.ingest.sources.kinds import PAGE, Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import CorpusType

_NUMBER = re.compile(r"(?:§\s*)?(?:appendix\s+)?(?:\d+(?:\.\d+)*|[ivx]{1,5}|[a-h])[.):]?[ \t—–-]+(?=\S)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_SAYS_TYPE = ("type", "kind", "category", "doc_type", "document_type", "layout")
_NAMED = (
    (frozenset(("runbook", "runbooks", "playbook", "playbooks")), CorpusType.DOC_RUNBOOK),
    (frozenset(("adr", "adrs")), CorpusType.DOC_ADR),
    (frozenset(("paper", "preprint")), CorpusType.DOC_PAPER),
    (frozenset(("readme",)), CorpusType.DOC_README),
)
_ADR_HEADINGS = frozenset(
    ("status", "context", "consequences", "decision drivers", "considered options", "alternatives")
)
_RUNBOOK_HEADINGS = frozenset(
    ("symptom", "symptoms", "diagnose", "diagnosis", "mitigate", "mitigation", "remediation", "escalate", "escalation")
)
# A report on what happened has the same parts, and is read for another reason.
_REPORT_HEADINGS = frozenset(("timeline", "root cause", "lessons learned", "what went well", "action items"))

# The first that occurs in a heading decides.
_SECTION_TYPES = tuple(
    (name, re.compile(rf"\b(?:{words})\b"))
    for name, words in (
        ("references", r"references|bibliography|works cited|literature cited"),
        ("appendix", r"appendix|appendices|supplementary|supplement|supplemental"),
        ("abstract", r"abstract|synopsis"),
        ("related_work", r"related work|related works|prior work|previous work|literature review|state of the art"),
        ("introduction", r"introduction|background|motivation|overview"),
        ("conclusion", r"conclusions?|concluding remarks|closing remarks"),
        ("results", r"results?|findings|outcomes"),
        ("discussion", r"discussion|limitations|threats to validity|future work|implications"),
        ("experiments", r"experiments?|experimental|evaluation|evaluations|datasets?|case study|benchmarks?"),
        (
            "methodology",
            r"methods?|methodology|approach|algorithms?|materials|design|model|implementation|architecture",
        ),
    )
)
UNKNOWN = "unknown"


def plain(heading: str) -> str:
    """A heading without its number, in lower case."""
    bare = " ".join(heading.split())
    return (
        _NUMBER.sub("", bare, count=1).strip(" .:#*_").lower() if _NUMBER.match(bare) else bare.strip(" .:#*_").lower()
    )


def section_type(headings: Sequence[tuple[int, str]], title: str | None) -> str:
    """The part of a paper that a path of headings leads to: what the innermost of them tells, if it tells."""
    below = [name for level, name in headings if level > 1 or name != title]
    if not below:
        return "title"
    for heading in reversed(below):
        words = plain(heading)
        found = "appendix" if heading.lower().startswith("appendix") else None
        found = found or next((name for name, pattern in _SECTION_TYPES if pattern.search(words)), None)
        if found:
            return found
    return UNKNOWN


def kind_by_content(
    file: SourceFile, title: str | None, headings: Iterable[str], pairs: Iterable[tuple[str, str]] = ()
) -> Kind:
    """The file's kind, with the corpus type that the page shows where neither its path nor a user's rule says one."""
    kind = kind_of(file)
    if kind.corpus_type != PAGE or file.corpus_type:
        return kind
    said = dict(pairs)
    names = {plain(heading) for heading in headings}
    found = next((_named(said[key]) for key in _SAYS_TYPE if key in said and _named(said[key])), None)
    found = found or _named(title or "", exact=False) or _by_headings(names)
    return replace(kind, corpus_type=found) if found else kind


def _named(text: str, *, exact: bool = True) -> CorpusType | None:
    """A title that merely has the word paper in it is not one; runbooks and ADRs say so in front."""
    words = _WORD.findall(text.lower())
    if not exact:
        words = [word for word in {*words[:1], *words[-1:]} if word.startswith(("runbook", "playbook", "adr"))]
    return next((corpus_type for known, corpus_type in _NAMED if not known.isdisjoint(words)), None)


def _by_headings(names: set[str]) -> CorpusType | None:
    if "decision" in names and len(names & _ADR_HEADINGS) >= 2:
        return CorpusType.DOC_ADR
    if "abstract" in names and names & {"references", "bibliography"}:
        return CorpusType.DOC_PAPER
    words = {name.split(" ")[0] for name in names}
    if len(words & _RUNBOOK_HEADINGS) >= 2 and not names & _REPORT_HEADINGS:
        return CorpusType.DOC_RUNBOOK
    return None
