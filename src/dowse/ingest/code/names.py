"""Pieces of source code go in; the names, import paths and plain sentences in them come out."""

from __future__ import annotations

import re

LONGEST_CALL_CHARS = 80  # chosen: what is longer is an expression, of which the last name is kept
_LAST_NAME = re.compile(r"[^\W\d][\w$]*[!?]?$|\$\w+$")
_PATH = re.compile(r"[\w$@]+[!?]?(?:(?:\.|::|->|\?\.|\\|:)[\w$~]+[!?]?)*")
_JOINTS = re.compile(r"::|->|\?\.|\\|:")
_GENERICS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_OWN = ("self.", "this.", "cls.", "super.", "$this.", "Self.")
# Receivers that say where a name is kept, not whose it is.
_NO_SCOPES = frozenset(("exports", "module.exports", "module", "this", "self", "window", "root", "global"))
_MARKER = re.compile(r"^\s*(?:/{2,}!?|/\*+!?|\*+/|\*+(?=\s|$)|#+!?(?!\[)|-{2,}|%+|;+|\"{3}|'{3}|@doc\b|@moduledoc\b)")
_TAG = re.compile(
    r"\s*(?:@\w+|:\w+[^:]*:|\\\w+|Args:|Arguments:|Parameters\b|Returns?:|Raises:|Example|>>>|-{3,}|={3,})"
)
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|\*/\s*$|[\"']{3}\s*$")
# What the lines end or begin with that those may change: a plain look takes a tenth of the time of a pattern.
_MARKUP_ENDS = ("*/", '"', "'")
_MARKER_STARTS = tuple("/*#-%;\"'@")
_LICENSE = re.compile(r"copyright|licen[sc]e|spdx-|all rights reserved|-\*-|vim:|eslint|pylint|noqa|^!", re.IGNORECASE)
_LICENSE_WORDS = (
    "copyright", "license", "licence", "spdx-", "all rights reserved", "-*-", "vim:", "eslint", "pylint", "noqa",
)  # fmt: skip
_PYTHON_FROM = re.compile(r"from\s+(\S+)\s+import\s+(.*)", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*|\\\n|[()]")


def clipped(text: str, limit_chars: int) -> str:
    """In one line, cut between words."""
    line = " ".join(text[: 8 * limit_chars].split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1].rsplit(" ", 1)[0] + "…"


def called(text: str) -> str | None:
    """A callee's name as `store.put`, whatever the language writes between the parts; without self and this."""
    if len(text) <= LONGEST_CALL_CHARS and text.isidentifier():
        return text
    name = text if _is_dotted(text) else None
    if name is None:
        bare = _GENERICS.sub("", text).replace("::::", "::") if "<" in text else text
        if len(bare) > LONGEST_CALL_CHARS or not _PATH.fullmatch(bare):
            found = _LAST_NAME.search(bare[-LONGEST_CALL_CHARS:])
            return found.group() if found else None
        name = _JOINTS.sub(".", bare).strip(".")
    if name.startswith(_OWN):
        for own in _OWN:
            name = name.removeprefix(own)
    return name or None


def _is_dotted(text: str) -> bool:
    """Identifiers joined by dots, as most callees are: told in a quarter of the time that the patterns take."""
    return len(text) <= LONGEST_CALL_CHARS and all(map(str.isidentifier, text.split(".")))


def name_and_scope(name: str, scope: str) -> tuple[str, str]:
    """`Foo<T>::bar` is bar of Foo; a Go receiver `(s *Server[T])` and a JavaScript `Foo.prototype` are the scope."""
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
    """What an import statement or its path names: `from a import b, c` gives a.b and a.c, `a::{b, c}` a::b and a::c.

    A C header in quotation marks is looked for beside the file first, hence the `./` before it.
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
    """The first paragraph of a comment or docstring; nothing for decorators, licences and orders to tools."""
    if not lines:
        return None
    said: list[str] = []
    for line in lines:
        if not said and line.startswith("#!"):
            continue
        bare = _MARKUP.sub("", line) if "<" in line or line.rstrip().endswith(_MARKUP_ENDS) else line
        rest = _MARKER.sub("", bare, count=1) if bare.lstrip().startswith(_MARKER_STARTS) else bare
        if not said and bare.lstrip().startswith(("@", "[", "#[")) and rest == bare:
            continue
        rest = rest.strip().strip("\"'").strip() if not said else rest.strip()
        if said and (not rest or _TAG.match(rest)):
            break
        if rest and not _TAG.match(rest):
            said.append(rest)
    told = clipped(" ".join(said), limit_chars)
    return told if told and not _is_license(told) else None


def _is_license(told: str) -> bool:
    if not told.isascii():  # other letters than these may be the same but for their case
        return _LICENSE.search(told) is not None
    lowered = told.lower()
    return lowered.startswith("!") or any([word in lowered for word in _LICENSE_WORDS])
