"""Wire format of results and errors: JSON objects, exit codes and HTTP statuses, shared by all interfaces.

Pairs in our tuples (meta, stages, counts …) become JSON objects, times ISO 8601 in UTC with Z, unknown values null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dowse import errors

if TYPE_CHECKING:
    from dowse.lookup.related import RelatedChunks
    from dowse.lookup.symbols import SymbolMatch
    from dowse.query.explain.explanation import Explanation
    from dowse.reports import IndexReport
    from dowse.types import AnyChunk, QueryResult

Object = dict[str, Any]  # of JSON


class Exit(IntEnum):
    """Exit codes of the command line."""

    HITS = 0
    NOTHING = 1
    USAGE = 2
    NO_INDEX = 3  # no index, or an unusable one
    PARTIAL = 4
    REMOTE = 5  # model unavailable; everything possible without it was done
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT


class ErrorOutcome(NamedTuple):
    """Exit code and HTTP status of an error."""

    exit_code: Exit
    http_status: int


OUTCOMES: Mapping[type[errors.DowseError], ErrorOutcome] = MappingProxyType(
    {
        errors.DowseError: ErrorOutcome(Exit.BUG, 500),
        errors.BadRequestError: ErrorOutcome(Exit.USAGE, 400),
        errors.ModelMismatchError: ErrorOutcome(Exit.USAGE, 409),
        errors.NotAllowedError: ErrorOutcome(Exit.USAGE, 403),
        errors.NotFoundError: ErrorOutcome(Exit.NOTHING, 404),
        errors.NoIndexError: ErrorOutcome(Exit.NO_INDEX, 404),
        errors.UnavailableError: ErrorOutcome(Exit.PARTIAL, 503),
        errors.BusyError: ErrorOutcome(Exit.NO_INDEX, 503),
        errors.DeadlineError: ErrorOutcome(Exit.PARTIAL, 504),
        errors.MissingExtraError: ErrorOutcome(Exit.USAGE, 501),
        errors.ModelUnavailableError: ErrorOutcome(Exit.REMOTE, 502),
        errors.NoRecallError: ErrorOutcome(Exit.PARTIAL, 503),
        errors.StorageError: ErrorOutcome(Exit.NO_INDEX, 507),
        errors.CorruptIndexError: ErrorOutcome(Exit.NO_INDEX, 500),
        errors.SchemaVersionError: ErrorOutcome(Exit.NO_INDEX, 500),
    }
)


def outcome(error: errors.DowseError) -> ErrorOutcome:
    """Look up the outcome of an error by its class or nearest base class."""
    return next(OUTCOMES[kind] for kind in type(error).__mro__ if kind in OUTCOMES)


def error_object(error: errors.DowseError) -> Object:
    return {
        "error": {
            "type": type(error).__name__,
            "message": str(error),
            "exit_code": int(outcome(error).exit_code),
            "status": outcome(error).http_status,
        }
    }


def encode(value: object) -> bytes:
    """Encode a value as one line of JSON in UTF-8."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # File names that are not valid UTF-8 contain lone surrogates, which JSON cannot hold.
        return msgspec.json.encode(_replace_surrogates(value))


def plain(value: object) -> Any:
    """Convert a value without pairs inside to plain JSON types."""
    return msgspec.to_builtins(value)


def chunk_object(chunk: AnyChunk) -> Object:
    """Convert a chunk or scored chunk."""
    from dowse.types import ScoredChunk

    row: Object = plain(chunk)
    scores: Object = {"scores": plain(chunk.scores)} if isinstance(chunk, ScoredChunk) else {}
    return row | scores | {"meta": dict(chunk.meta)}


def report_object(report: IndexReport) -> Object:
    row: Object = plain(report)
    return row | {"skipped": dict(report.skipped), "scrubbed": dict(report.scrubbed)}


def result_object(result: QueryResult) -> Object:
    row: Object = plain(replace(result, chunks=(), groups=()))
    metadata = result.query_metadata
    row["chunks"] = [chunk_object(chunk) for chunk in result.chunks]
    row["groups"] = [
        {"document": each.document, "chunks": [chunk_object(chunk) for chunk in each.chunks]} for each in result.groups
    ]
    row["query_metadata"] |= {"stages": dict(metadata.stages), "counts": dict(metadata.counts)}
    return row


def explain_object(answer: Explanation) -> Object:
    """Convert an explanation to the object that `dowse explain --json` prints."""
    row: Object = {name: getattr(answer, name) for name in ("query", "target", "rank", "tried")}
    row["chunk"] = chunk_object(answer.chunk)
    row["way"] = [plain(position) for position in answer.trace]
    row["loss"] = None if answer.dropped_at is None else plain(answer.dropped_at)
    row["change"] = None
    if (verified := answer.verified) is not None:
        fields = plain(dict(verified.remedy.fields))
        row["change"] = {"told": verified.remedy.text, "fields": fields, "rank": verified.rank}
    row["hit"] = None if answer.hit is None else chunk_object(answer.hit)
    return row


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(item) for item in value]
    return value


def symbol_object(symbol: SymbolMatch) -> Object:
    """Convert a definition; `match` is the quality of the name match."""
    own = ("name", "match", "kind", "signature", "start_line", "end_line")
    of_chunk = ("summary", "source_uri", "file_path", "language", "service_name", "corpus_type")
    row: Object = {name: getattr(symbol, name) for name in own} | {"chunk_id": symbol.chunk.id}
    return row | {name: getattr(symbol.chunk, name) for name in of_chunk}


def related_object(related: RelatedChunks) -> Object:
    return {
        "chunks": [chunk_object(chunk) for chunk in related.chunks],
        "neighbours": [
            {name: getattr(each, name) for name in ("relation", "direction", "weight", "sentence")}
            | {"chunk": chunk_object(each.chunk)}
            for each in related.neighbours
        ],
        "total": related.total,
    }
