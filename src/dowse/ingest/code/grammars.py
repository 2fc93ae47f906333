"""The name of a language goes in; its compiled grammar comes out, or nothing where no wheel for it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dowse.ingest.code.code_queries import CORE, Queries
from dowse.ingest.code.code_queries_more import MORE

if TYPE_CHECKING:
    from tree_sitter import Language, Query

# Only where the wheel is not called like the language, or offers several grammars.
_WHEELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "typescript": ("typescript", "language_typescript"),
        "tsx": ("typescript", "language_tsx"),
        "csharp": ("c_sharp", "language"),
        "php": ("php", "language_php"),
        "shell": ("bash", "language"),
        "terraform": ("hcl", "language"),
    }
)


@dataclass(frozen=True)
class Grammar:
    """A language that can be parsed, and its compiled question."""

    name: str
    language: Language
    query: Query  # definitions, then references: one walk over the tree takes two thirds of the time of two


def wheel_of(name: str) -> tuple[str, str]:
    """The module of a language's wheel, and the function in it that gives the grammar."""
    module, function = _WHEELS.get(name, (name, "language"))
    return f"tree_sitter_{module}", function


def queries_of(name: str) -> Queries | None:
    return CORE.get(name) or MORE.get(name)


@cache
def grammar_of(name: str) -> Grammar | None:
    """Compiled once a process. None for a language that no table names, and for an extra that is not installed."""
    queries = queries_of(name)
    if queries is None:
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
    return Grammar(name, language, Query(language, queries.definitions + queries.references))
