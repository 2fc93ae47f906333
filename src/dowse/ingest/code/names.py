"""Names, import paths and summaries in pieces of source code."""

from __future__ import annotations

import re

LONGEST_CALL_CHARS = 80  # chosen: what is longer is an expression, of which the last name is kept
_LAST_NAME = re.compile(r"[^\W\d][\w$]*[!?]?$|\$\w+$")
_PATH = re.compile(r"[\w$@]+[!?]?(?:(?:\.|::|->|\?\.|\\|:)[\w$~]+[!?]?)*")
_JOINTS = re.compile(r"::|->|\?\.|\\|:")
_GENERICS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_OWN = ("self.", "this.", "cls.", "super.", "$this.", "Self.")
# Receivers that are places of a name, not its owners.
_NO_SCOPES = frozenset(("exports", "module.exports", "module", "this", "self", "window", "root", "global"))
_MARKER = re.compile(r"^\s*(?:/{2,}!?|/\*+!?|\*+/|\*+(?=\s|$)|#+!?(?!\[)|-{2,}|%+|;+|\"{3}|'{3}|@doc\b|@moduledoc\b)")
_TAG = re.compile(
    r"\s*(?:@\w+|:\w+[^:]*:|\\\w+|Args:|Arguments:|Parameters\b|Returns?:|Raises:|Example|>>>|-{3,}|={3,})"
)
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|\*/\s*$|[\"']{3}\s*$")
_LICENSE = re.compile(r"copyright|licen[sc]e|spdx-|all rights reserved|-\*-|vim:|eslint|pylint|noqa|^!", re.IGNORECASE)
_PYTHON_FROM = re.compile(r"from\s+(\S+)\s+import\s+(.*)", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*|\\\n|[()]")


def clipped(text: str, limit_chars: int) -> str:
    """Return one line, cut between words."""
    line = " ".join(text[: 8 * limit_chars].split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rsplit(" ", 1)[0] + "…"


def called(text: str) -> str | None:
    """Return a callee's name as `store.put` in every language, without self and this."""
    if len(text) <= LONGEST_CALL_CHARS and text.isidentifier():
        return text
    bare = _GENERICS.sub("", text).replace("::::", "::") if "<" in text else text
    if len(bare) > LONGEST_CALL_CHARS or not _PATH.fullmatch(bare):
        found = _LAST_NAME.search(bare[-LONGEST_CALL_CHARS:])
        return found.group() if found else None
    name = _JOINTS.sub(".", bare).strip(".")
    if name.startswith(_OWN):
        for own in _OWN:
            name = name.removeprefix(own)
    return name or None


def name_and_scope(name: str, scope: str) -> tuple[str, str]:
    """Return name and scope: `Foo<T>::bar` is bar of Foo, a Go receiver `(s *Server[T])` is the scope."""
    if not scope and name.isidentifier():
        return name, ""
    bare = _GENERICS.sub("", name) if "<" in name and "operator" not in name else name
    bare = " ".join(bare.strip("\"'`").split())
    if "::" in bare and "operator" not in bare.split("::")[0]:
        scope, _, bare = bare.rpartition("::")
    while (plain := _GENERICS.sub("", scope)) != scope:
        scope = plain
    scope = _JOINTS.sub(".", scope.strip("() \t\n*&")).removesuffix(".prototype")
    scope = scope.rsplit(" ", 1)[-1].rsplit("*", 1)[-1].strip(".")
    return bare or name, "" if scope in _NO_SCOPES or not _PATH.fullmatch(scope or "") else scope


def imported(text: str, language: str) -> list[str]:
    """Return the names of an import: `from a import b, c` gives a.b and a.c, `a::{b, c}` a::b and a::c.

    A C compiler searches a header in quotation marks in the file's folder first, hence the `./` before it.
    """
    if language == "python":
        plain = _COMMENT.sub(" ", text)
        if found := _PYTHON_FROM.match(plain):
            module, names = found.group(1), found.group(2)
            joint = "" if module.endswith(".") else "."
            return [f"{module}{joint}{name.split()[0]}" for name in names.split(",") if name.split()]
        return [part.split()[0] for part in plain.removeprefix("import").split(",") if part.split()]
    bare = "".join(text.removeprefix("import ").split())
    if language in ("c", "cpp") and bare.startswith('"'):
        return ["./" + bare.strip('"')]
    head, brace, inside = bare.strip("\"'<>`").partition("{")
    return [head + each.strip("}") for each in inside.split(",") if each.strip("}")] if brace else [head]


def summary_of(lines: list[str], limit_chars: int) -> str | None:
    """Return the first paragraph of a comment or docstring; none for decorators, licences and pragmas."""
    if not lines:
        return None
    words: list[str] = []
    for line in lines:
        if not words and line.startswith("#!"):
            continue
        bare = _MARKUP.sub("", line)
        rest = _MARKER.sub("", bare, count=1)
        if not words and bare.lstrip().startswith(("@", "[", "#[")) and rest == bare:
            continue
        rest = rest.strip().strip("\"'").strip() if not words else rest.strip()
        if words and (not rest or _TAG.match(rest)):
            break
        if rest and not _TAG.match(rest):
            words.append(rest)
    summary = clipped(" ".join(words), limit_chars)
    return summary if summary and not _LICENSE.search(summary) else None
