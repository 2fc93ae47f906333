"""The [[kinds]] tables of a settings file go in, rules come out, or an error that names table and key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from dowse.errors import BadRequestError
from dowse.ingest.sources.kinds import OwnKind
from dowse.types import CorpusType

KEYS = ("match", "reader", "language", "corpus_type")


def own_kinds(tables: Sequence[Mapping[str, Any]], readers: Collection[str]) -> tuple[OwnKind, ...]:
    """In the order they are written: the first that matches a file decides."""
    return tuple(_rule(table, f"[[kinds]] number {number}", readers) for number, table in enumerate(tables, start=1))


def _rule(table: Mapping[str, Any], where: str, readers: Collection[str]) -> OwnKind:
    for key in table:
        if key not in KEYS:
            raise BadRequestError(f"{where}: unknown key {key!r}; {_advice(key, KEYS)}")
    match = table.get("match")
    globs = [match] if isinstance(match, str) else match
    if not isinstance(globs, list) or not globs or not all(isinstance(each, str) and each for each in globs):
        raise BadRequestError(f'{where}: match must be a glob or a list of globs, as match = ["*.pyx", "infra/**"]')
    if len(table) == 1:
        raise BadRequestError(f"{where}: it changes nothing; add reader, language or corpus_type")
    reader = _text(table, "reader", where)
    if reader is not None and reader not in readers:
        raise BadRequestError(f"{where}: no reader {reader!r}; {_advice(reader, sorted(readers))}")
    corpus = _text(table, "corpus_type", where)
    if corpus is not None and corpus not in set(CorpusType):
        known = [each.value for each in CorpusType]
        raise BadRequestError(f"{where}: unknown corpus_type {corpus!r}; {_advice(corpus, known)}")
    language = _text(table, "language", where)
    return OwnKind(tuple(globs), reader, language, CorpusType(corpus) if corpus else None)


def _text(table: Mapping[str, Any], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise BadRequestError(f"{where}: {key} is {value!r}, but must be text in quotes")
    return value


def _advice(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}"
