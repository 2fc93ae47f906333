"""Extractive summaries: a text enters, its most central sentences within a limit leave.

The first sentence leads, because people put the main point there. The others are chosen by how many of their words the
other sentences share, so repeated subjects are in and asides are out.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from math import log1p, sqrt

from dowse.tokenizer import STOP_WORDS

MOST_SENTENCES = 24  # chosen: a summary of 500 characters is not made better by more
FEWEST_WORDS = 4  # chosen: a shorter line is a label
LONGEST_READ_CHARS = 3072  # chosen: most of the longest parent
ELLIPSIS = "…"

# Every pattern starts with a character that is rare, so that the search for it runs over the text at once.
_FENCE = re.compile(r"(```|~~~).*?(?:\1[^\n]*|\Z)", re.DOTALL)
_BLOCK = re.compile(r"\n(?:[ \t]*\n|(?=\||[ \t]*(?:[-*+>]|#{1,6}|\d{1,3}[.)])\s))")
_MARKER = re.compile(r"\A\s*(?:[-*+>]|\d{1,3}[.)])[ \t]+")
_LINK = re.compile(r"\[([^\]\n]{0,200})\]\([^)\n]{0,400}\)")
_END = re.compile(r"[.!?][\"')\]]? (?=[A-Z0-9\"'(\[])|[。！？]")
# Headings, table rows, rulers, directives, comments, fields and formulas: lines that are no sentences.
_NO_SENTENCE = re.compile(r"\s*(?:#|\||\+[-=]|[-=~^*_]{3,}|\.\. |<|//|/\*|:[\w ]+:|\$\$)")
_CLOSED = (".", "!", "?", "。", "！", "？")
_WORD = re.compile(r"[^\W_]+")
# A full stop after one of these ends nothing.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|al|fig|eq|dr|mr|mrs|ms|st|no|approx|[A-Za-z])\.$", re.IGNORECASE
)


def summarise(text: str, limit_chars: int) -> str:
    """Return at most `limit_chars` characters; empty when the text has no sentence."""
    sentences = sentences_of(text)
    if not sentences:
        return ""
    if len(sentences[0]) >= limit_chars:
        return shortened(sentences[0], limit_chars)
    chosen = {0}
    left = limit_chars - len(sentences[0])
    for at in _by_centrality(sentences):
        if at not in chosen and len(sentences[at]) + 1 <= left:
            chosen.add(at)
            left -= len(sentences[at]) + 1
    return " ".join(sentences[at] for at in sorted(chosen))


def sentences_of(text: str) -> list[str]:
    """Return the first sentences, each on one line and without markup; no headings, tables or code."""
    prose = text[:LONGEST_READ_CHARS]
    if "```" in prose or "~~~" in prose:
        prose = _FENCE.sub("\n\n", prose)
    found: list[str] = []
    for block in _BLOCK.split(prose):
        if len(found) >= MOST_SENTENCES:
            break
        if block and " | " not in block and not _NO_SENTENCE.match(block):
            bare = _LINK.sub(r"\1", _MARKER.sub("", block, count=1))
            found += _cut(" ".join(bare.replace("`", "").replace("*", "").split()))
    closed = [sentence for sentence in found if sentence.endswith(_CLOSED) and not sentence[0].islower()]
    return list(dict.fromkeys(closed or found))


def _cut(block: str) -> list[str]:
    """Return the sentences of a paragraph on one line, without mere labels."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(block):
        sentence = block[start : end.end()].rstrip()
        if not _ABBREVIATION.search(sentence, max(len(sentence) - 8, 0)):
            sentences.append(sentence)
            start = end.end()
    sentences.append(block[start:])
    return [each for each in sentences if each.count(" ") + 1 >= FEWEST_WORDS or (len(each) > 8 and not each.isascii())]


def shortened(text: str, limit_chars: int) -> str:
    """Cut between words; the ellipsis counts."""
    if len(text) <= limit_chars:
        return text
    cut = text[: max(limit_chars - 1, 0)]
    at = cut.rfind(" ")
    return (cut[:at] if at > limit_chars // 2 else cut).rstrip(" ,;:") + ELLIPSIS if limit_chars > 0 else ""


def _by_centrality(sentences: list[str]) -> list[int]:
    """Return indexes of the sentences, the most central first; the earlier one wins a tie."""
    words = [set(_WORD.findall(sentence.lower())) - STOP_WORDS for sentence in sentences]
    shared = Counter(chain.from_iterable(words))
    weights = {word: log1p(count - 1) for word, count in shared.items()}
    scores = [sum(weights[word] for word in sorted(each)) / sqrt(len(each) + 1) for each in words]
    return sorted(range(len(sentences)), key=lambda at: (-scores[at], at))
