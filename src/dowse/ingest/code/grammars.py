"""Tree-sitter grammars: the name of a language enters, its compiled grammar and query leave.

`queries/LANGUAGE.scm` holds the query of a language. Each pattern captures a definition under its kind and its name as
`@name`. `@minor.KIND` never makes a chunk of its own (a constant, a field, a prototype); `@scope.KIND` only encloses
others (an impl block); `@scope` is a receiver or qualifier in front of the name. Where two patterns match one name, the
first wins. `@call` is a called function, `@import` an import, `@above` a comment, decorator or attribute that belongs
to the definition below it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Language, Query

# Installed with Dowse, and with the extra `langs`.
CORE = (
    "python", "go", "java", "kotlin", "scala", "javascript", "typescript", "tsx", "c", "cpp", "csharp", "rust", "ruby",
    "php", "shell", "elixir",
)  # fmt: skip
MORE = ("swift", "sql", "lua", "terraform")
# Only where the wheel has another name than the language, or offers several grammars.
_WHEELS = {
    "typescript": ("typescript", "language_typescript"),
    "tsx": ("typescript", "language_tsx"),
    "csharp": ("c_sharp", "language"),
    "php": ("php", "language_php"),
    "shell": ("bash", "language"),
    "terraform": ("hcl", "language"),
}
_INHERITS = re.compile(r"; inherits: (\w+)\n")


class Grammar(msgspec.Struct, frozen=True):
    """Language that can be parsed, and its compiled query."""

    name: str
    language: Language
    query: Query  # definitions and references: one walk over the tree takes two thirds of the time of two


def wheel_of(name: str) -> tuple[str, str]:
    """Return the module of a language's wheel, and the function in it that returns the grammar."""
    module, function = _WHEELS.get(name, (name, "language"))
    return f"tree_sitter_{module}", function


def query_of(name: str) -> str:
    """Return the text of a language's query, behind that of the language it inherits from."""
    text = (files("dowse.ingest.code") / "queries" / f"{name}.scm").read_text("utf-8")
    base = _INHERITS.match(text)
    return query_of(base[1]) + text if base else text


def has_grammar(name: str) -> bool:
    """Return whether the wheel of a language is installed, without loading it."""
    return find_spec(wheel_of(name)[0]) is not None


@cache
def grammar_of(name: str) -> Grammar | None:
    """Return the grammar, compiled once a process; None for an unknown or not installed language."""
    if name not in CORE and name not in MORE:
        return None
    module, function = wheel_of(name)
    try:
        wheel: Any = import_module(module)
    except ModuleNotFoundError as err:
        if err.name != module:
            raise
        return None
    from tree_sitter import Language, Query

    language = Language(getattr(wheel, function)())
    return Grammar(name, language, Query(language, query_of("typescript" if name == "tsx" else name)))
