"""Glob patterns of paths as regular expressions that match in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from dowse.errors import BadRequestError

LONGEST_GLOB_CHARS = 1_000  # chosen: four times the longest path that people write
MOST_ALTERNATIVES = 64  # chosen; of all braces of a glob together
_WILDCARDS = ("**/", "**", "*")
_GAPS = {"": "", "**": ".*?", "**/": "(?:.*?/)??"}


@lru_cache(maxsize=512)
def glob_expression(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern; BadRequestError for an empty, overlong or too branching one."""
    if not pattern:
        raise BadRequestError("an empty path pattern matches nothing; try '*.py' or 'docs/**'")
    if len(pattern) > LONGEST_GLOB_CHARS:
        raise BadRequestError(f"the path pattern has {len(pattern):,} characters; at most {LONGEST_GLOB_CHARS:,} work")
    start = [] if "/" in pattern.rstrip("/") else ["**/"]
    tail = "(?:/.*)?" if pattern.endswith("/") else ""
    glob = pattern.removeprefix("./").removeprefix("/")
    slashes = len(glob) - len(glob.rstrip("/"))
    found = _alternatives(glob)
    bodies = [linear_expression(each, tail) for tokens in found for each in _at_slashes(start, tokens, slashes)]
    return re.compile("|".join(f"(?:{body})" for body in bodies), re.DOTALL)


def _alternatives(glob: str) -> list[list[str]]:
    """Split a glob into tokens, once for each choice of alternatives in braces: wildcards, or expressions."""
    found: list[list[str]] = [[]]
    at = 0
    while at < len(glob):
        char = glob[at]
        ends = [[re.escape(char)]]
        if wildcard := next((each for each in _WILDCARDS if glob.startswith(each, at)), ""):
            ends = [[wildcard]]
            at += len(wildcard)
        elif char == "?":
            ends = [["[^/]"]]
            at += 1
        elif char == "[" and (end := glob.find("]", at + 2 + glob.startswith(("!", "^"), at + 1))) > 0:
            ends = [[_one_of(glob[at + 1 : end])]]
            at = end + 1
        elif char == "{" and (end := glob.find("}", at)) > 0:
            ends = [tokens for part in glob[at + 1 : end].split(",") for tokens in _alternatives(part)]
            at = end + 1
        else:
            at += 1
        found = [start + end for start in found for end in ends]
        if len(found) > MOST_ALTERNATIVES:
            raise BadRequestError(f"a path pattern has more than {MOST_ALTERNATIVES} alternatives in braces; use fewer")
    return found


def _at_slashes(start: list[str], tokens: list[str], slashes: int) -> list[list[str]]:
    """Write `**/` inside a name, as in `a**/b`, as two alternatives: nothing, or `**` and a slash."""
    while slashes and tokens and tokens[-1] == "/":  # at the end of the pattern
        tokens, slashes = tokens[:-1], slashes - 1
    found = [start]
    for token in tokens:
        inside = [each for each in found if token == "**/" and each and each[-1] not in ("/", *_WILDCARDS[:2])]
        found = inside + [each + (["**", "/"] if each in inside else [token]) for each in found]
        if len(found) > MOST_ALTERNATIVES:
            raise BadRequestError("the path pattern has too many '**/' inside names; write '/**/' instead")
    return found


def linear_expression(tokens: list[str], tail: str) -> str:
    """Return the expression of a glob that needs linear time.

    Between two wildcards, the first place where the tokens match is as good as any later one, because the wildcard
    behind them can cover the difference. So only what follows the last wildcard is tried at more than one place.
    """
    parts: list[tuple[str, list[str]]] = [("", [""])]  # by `**`; each in pieces by `*`
    for token in tokens:
        before, pieces = parts[-1]
        if token not in _WILDCARDS:
            pieces[-1] += token
        elif before and pieces == [""] and (token == before or before == "**"):
            continue  # `**` right before covers it
        elif before and pieces == [""] and token == "**":
            parts[-1] = (token, pieces)
        elif token == "*":
            pieces.append("")
        else:
            parts.append((token, [""]))
    *firsts, (before, pieces) = [(_GAPS[before], pieces) for before, pieces in parts]
    head = "".join(f"(?>{gap}{_joined(pieces)})" for gap, pieces in firsts)
    last = _joined(pieces[:-1]) + "[^/]*" + pieces[-1] if len(pieces) > 1 else pieces[-1]
    return head + before + last + tail


def _joined(pieces: Sequence[str]) -> str:
    return pieces[0] + "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:])


def _one_of(inside: str) -> str:
    """What stands between brackets: characters and ranges, all but those after ! or ^; never a slash."""
    negated = inside[0] in "!^"
    inside = inside[negated:]
    kinds, at = "", 0
    while at < len(inside):
        first = last = inside[at]
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            last = inside[at + 2]
            at += 2
        at += 1
        if first <= last:  # a range that runs backwards holds nothing
            kinds += f"{re.escape(first)}-{re.escape(last)}"
    if not kinds:
        return "[^/]" if negated else "(?!)"
    return f"(?!/)[{'^' if negated else ''}{kinds}]"
