"""Ignore files go in, as git writes them; whether a path is left out comes out.

Written here and not taken from pathspec because the walk prunes folders, and so needs the verdict on an entry itself:
pathspec also lets a pattern match what lies below a match, and then answers the white list `*`, `!*/`, `!*.py`
differently from git. The tests compare with `git check-ignore`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from dowse.globs import linear_expression

LONGEST_PATTERN_CHARS = 4_000  # chosen: longer than any path; git has no limit
IGNORE_FILES = (".gitignore", ".ignore", ".dowseignore")  # a later one has the last word

_FOLDERS = re.compile(r"\*\*/")
_STARS = re.compile(r"\*+")
_BRACKET = re.compile(r"\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*)\]", re.DOTALL)
_MEMBER = re.compile(r"\[:(\w+):\]|\\(.)|(-)|(.)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "space": r"\s",
    "punct": r"!-\/:-@\[-`{-~", "xdigit": "0-9a-fA-F", "blank": r" \t", "word": r"\w",
}  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    """One line of an ignore file."""

    regex: str  # for the whole path below the ignore file's folder, without a slash at the end
    negated: bool
    folders_only: bool


class PatternGroup(NamedTuple):
    """Neighbouring patterns of one polarity, which can be asked in one go."""

    negated: bool
    for_folders: re.Pattern[str]
    for_files: re.Pattern[str]


@dataclass(frozen=True)
class Rules:
    """The ignore files that hold at some place of the tree: folder (with a slash at its end) and groups, outermost
    first.
    """

    levels: tuple[tuple[str, tuple[PatternGroup, ...]], ...] = ()

    def below(self, folder: str, lines: Iterable[str]) -> Rules:
        """These rules and one more set, for what lies in `folder`."""
        groups = parse(lines)
        return Rules((*self.levels, (folder.rstrip("/") + "/", groups))) if groups else self

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """The last pattern that matches decides, the innermost file first. `path` is absolute; its folders have been
        asked before, since no pattern re-includes a file of an ignored folder.
        """
        for folder, groups in reversed(self.levels):
            inner = path[len(folder) :]
            for group in reversed(groups):
                if (group.for_folders if is_folder else group.for_files).fullmatch(inner):
                    return not group.negated
        return False


def read_rules(rules: Rules, folder: str, files: Sequence[str] | None = None) -> Rules:
    """The rules with those that `folder` adds, from its ignore files or the given ones. May raise OSError."""
    lines: list[str] = []
    for path in files if files is not None else [os.path.join(folder, name) for name in IGNORE_FILES]:
        if os.path.isfile(path):
            with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
                lines += file.read().split("\n")
    return rules.below(folder, lines)


def parse(lines: Iterable[str]) -> tuple[PatternGroup, ...]:
    groups: list[PatternGroup] = []
    for negated, run in groupby(filter(None, map(_pattern, lines)), key=lambda pattern: pattern.negated):
        patterns = list(run)
        files = [pattern for pattern in patterns if not pattern.folders_only]
        groups.append(PatternGroup(negated, _any_of(patterns), _any_of(files)))
    return tuple(groups)


def _pattern(line: str) -> Pattern | None:
    """None for comments, blank lines and what git takes for no pattern either."""
    line = _without_trailing_blanks(line.rstrip("\r"))
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    body = line[1:] if negated else line
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    tokens = _tokens(body.removeprefix("/")) if len(body) <= LONGEST_PATTERN_CHARS else None
    if not body or tokens is None:
        return None
    return Pattern(linear_expression(tokens if anchored else ["**/", *tokens], ""), negated, folders_only)


def _without_trailing_blanks(line: str) -> str:
    """Blanks at the end do not count unless a backslash stands before them."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(stripped) < len(line) else stripped


def _tokens(glob: str) -> list[str] | None:
    """Split a pattern of git into wildcards and expressions; None if it can match nothing, as an open bracket."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        if found := _FOLDERS.match(glob, at):
            out += ["**/"] if at == 0 or glob[at - 1] == "/" else ["*", "/"]
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            out.append(".+")
            break
        elif found := _STARS.match(glob, at):
            out.append("*")
        elif found := _BRACKET.match(glob, at):
            out.append(_bracket(found[1], found[2]))
        elif found := _ESCAPED.match(glob, at):
            out.append(re.escape(found[1]))
        elif glob[at] in "[\\":
            return None
        else:
            out.append("[^/]" if glob[at] == "?" else re.escape(glob[at]))
            at += 1
            continue
        at = found.end()
    return out


def _bracket(negation: str, inside: str) -> str:
    """A character class. It never matches a slash, as in git; one that makes no sense matches nothing."""
    members = _MEMBER.sub(_member, inside)
    try:
        re.compile(f"[{members}]")
    except re.error:
        return "(?!)"
    return f"(?!/)[{'^' if negation else ''}{members}]"


def _member(found: re.Match[str]) -> str:
    named, escaped, dash, plain = found.groups()
    return _CLASSES.get(named, "") if named else dash or re.escape(escaped or plain)


def _any_of(patterns: Iterable[Pattern]) -> re.Pattern[str]:
    """Matches nothing when there are none."""
    return re.compile("|".join(f"(?:{pattern.regex})" for pattern in patterns) or "(?!)", re.DOTALL)
