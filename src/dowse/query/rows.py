"""Rows of plug-ins: results of stores, legs and rerankers in any usual shape become ids, scores and chunks.

A row is a mapping or an object with `id` or `chunk_id`, and a score or a distance; or a pair of id and score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import msgspec

from dowse.errors import BadRequestError, UnavailableError
from dowse.ports import Candidate
from dowse.types import Chunk, ScoredChunk

_IDS = ("id", "chunk_id", "entity_id")
_TEXTS = ("text", "content")
_SCORES = ("reranked_score", "rerank_score", "score", "final_score", "similarity", "rrf_score", "value")
_DISTANCES = ("_distance", "distance")
_OTHER_NAMES = {
    "document_id": "paper_id", "symbol_name": "name", "symbol_kind": "type", "document_title": "title",
    "source_uri": "source",
}  # fmt: skip
_PLAIN = (str, int, float, list, tuple, datetime)


class PluginRow(NamedTuple):
    """A result of a plug-in."""

    id: str
    score: float
    chunk: Chunk | None  # None: the row has no text


class CandidateRow(dict[str, Any]):
    """A candidate as a plug-in reads it: keys or attributes, which it may also set."""

    def __init__(self, candidate: Candidate) -> None:
        chunk, value = candidate.chunk, candidate.value
        super().__init__(
            msgspec.structs.asdict(chunk), chunk=chunk, value=value, score=value, rrf_score=value, final_score=value,
            chunk_id=chunk.id, content=chunk.text, name=chunk.symbol_name or chunk.document_title,
            source=candidate.source,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def rows_of(found: Any, name: str) -> list[PluginRow]:
    """Return the rows of a reply, each id once; UnavailableError for anything that has no ids and scores."""
    if isinstance(found, str | bytes | Mapping):
        raise UnavailableError(f"{name} returned {type(found).__name__}, not a list of results")
    try:
        rows = [_row(each, rank) for rank, each in enumerate(found)]
    except (TypeError, ValueError, KeyError, AttributeError, msgspec.ValidationError) as err:
        raise UnavailableError(f"{name} returned results without id and score ({err})") from err
    return list({row.id: row for row in reversed(rows)}.values())[::-1]


def _row(given: Any, rank: int) -> PluginRow:
    if isinstance(given, Candidate):
        return PluginRow(given.chunk.id, _finite(given.value), given.chunk)
    if isinstance(given, tuple | list):
        key, score, *_ = given
        return PluginRow(str(key), _finite(score), None)
    key = _first(given, _IDS)
    if not isinstance(key, str | int):
        raise TypeError(f"{type(given).__name__} has no id")
    return PluginRow(str(key), score_of(given, 1 / (1 + rank)), chunk_of(given))


def _finite(value: Any) -> float:
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"score {number}")
    return number


def score_of(given: Any, default: float) -> float:
    """Return the score of a row, or 1 − its distance; the default for a row without either."""
    score = _first(given, _SCORES)
    if score is not None:
        return _finite(score)
    distance = _first(given, _DISTANCES)
    return default if distance is None else 1 - _finite(distance)


def candidates_of(given: Sequence[Any]) -> list[Candidate]:
    """Return candidates from candidates, hits, chunks, mappings or objects with id and text."""
    return [each if isinstance(each, Candidate) else _candidate(each) for each in given]


def _candidate(given: Any) -> Candidate:
    chunk = chunk_of(given)
    if chunk is None:
        raise BadRequestError(f"a candidate is {type(given).__name__}; give chunks, hits, or objects with id and text")
    return Candidate(chunk, score_of(given, 0.0), source=str(_first(given, ("source",)) or ""))


def chunk_of(given: Any) -> Chunk | None:
    """Return the chunk of a row; None if it has no text."""
    if isinstance(given, Chunk):
        return given
    if isinstance(found := _get(given, "chunk"), Chunk):
        return found
    if isinstance(_first(found := _get(given, "entity"), _IDS), str):
        given = found
    text, key = _first(given, _TEXTS), _first(given, _IDS)
    if not isinstance(text, str) or not isinstance(key, str | int):
        return None
    known = {name: _get(given, name) for name in Chunk.__struct_fields__ if name != "defines"}
    known |= {name: _get(given, other) for name, other in _OTHER_NAMES.items() if known[name] is None}
    known = {name: value for name, value in known.items() if isinstance(value, _PLAIN)}
    links = _get(_get(given, "metadata"), "connection_count")
    known |= {"connection_count": links} if isinstance(links, int) else {}
    empty = {"document_id": "", "corpus_type": "", "source_uri": ""}
    moment = {"timestamp": _moment(known.get("timestamp"))}
    return msgspec.convert(empty | known | moment | {"id": str(key), "text": text}, Chunk)


def iso(moment: datetime) -> str:
    """Return ISO 8601 with an offset, as JSON results have it; a time without a zone counts as UTC."""
    text = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def hit_of(chunk: Chunk, **scores: float) -> ScoredChunk:
    """Return a chunk as a hit with these scores."""
    moment = None if chunk.timestamp is None else iso(chunk.timestamp)
    return ScoredChunk(**(msgspec.structs.asdict(chunk) | {"timestamp": moment} | scores))


def _moment(value: Any) -> datetime | None:
    """Return a moment from ISO 8601 or seconds since the epoch; None from anything else."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        found = datetime.fromtimestamp(found, UTC) if isinstance(found, int | float) else found
    except (ValueError, OverflowError, OSError):
        return None
    return found if isinstance(found, datetime) else None


def _first(given: Any, names: Sequence[str]) -> Any:
    values = (_get(given, name) for name in names)
    return next((value for value in values if isinstance(value, str | Real)), None)


def _get(given: Any, name: str) -> Any:
    if given is None:
        return None
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
