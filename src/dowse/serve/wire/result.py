"""Results become JSON and JSON results; errors become exit codes and HTTP statuses: shared by all faces.

Pairs in our tuples (meta, stages, counts …) are JSON objects; moments are ISO 8601 in UTC with Z; what is not
known is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dowse import errors

if TYPE_CHECKING:
    from dowse.query.explain.explanation import WhyNot
    from dowse.reports import IndexReport
    from dowse.types import Chunk, QueryResult

Object = dict[str, Any]
"""A JSON object."""


class Exit(IntEnum):
    """What the command line's exit codes mean."""

    HITS = 0
    NOTHING = 1
    USAGE = 2
    NO_INDEX = 3  # none, or one that cannot be used now
    PARTIAL = 4
    REMOTE = 5  # a model could not be had; what could be done without it was done
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT


@dataclass(frozen=True)
class Outcome:
    """What an error means outside the house."""

    exit_code: Exit
    http_status: int


OUTCOMES: Mapping[type[errors.DowseError], Outcome] = MappingProxyType(
    {
        errors.DowseError: Outcome(Exit.BUG, 500),
        errors.BadRequestError: Outcome(Exit.USAGE, 400),
        errors.ModelMismatchError: Outcome(Exit.USAGE, 409),
        errors.NotAllowedError: Outcome(Exit.USAGE, 403),
        errors.NotFoundError: Outcome(Exit.NOTHING, 404),
        errors.NoIndexError: Outcome(Exit.NO_INDEX, 404),
        errors.UnavailableError: Outcome(Exit.PARTIAL, 503),
        errors.BusyError: Outcome(Exit.NO_INDEX, 503),
        errors.DeadlineError: Outcome(Exit.PARTIAL, 504),
        errors.MissingExtraError: Outcome(Exit.USAGE, 501),
        errors.ModelUnavailableError: Outcome(Exit.REMOTE, 502),
        errors.NoRecallError: Outcome(Exit.PARTIAL, 503),
        errors.StorageError: Outcome(Exit.NO_INDEX, 507),
        errors.CorruptIndexError: Outcome(Exit.NO_INDEX, 500),
        errors.SchemaVersionError: Outcome(Exit.NO_INDEX, 500),
    }
)


def outcome(error: errors.DowseError) -> Outcome:
    """That of the error's class, or of the nearest one above it."""
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


def problem_object(error: errors.DowseError) -> Object:
    """The same as a problem of RFC 9457."""
    kind = type(error)
    return {
        "type": f"urn:dowse:error:{kind.__name__}",
        "title": (kind.__doc__ or kind.__name__).strip().splitlines()[0],
        "status": outcome(error).http_status,
        "detail": str(error),
    }


def encode(value: object) -> bytes:
    """JSON in one line, in UTF-8."""
    import msgspec

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # File names that are not valid UTF-8 reach us with lone surrogates, which JSON cannot hold.
        return msgspec.json.encode(_replace_surrogates(value))


def indented(data: bytes) -> bytes:
    """The same JSON for people."""
    import msgspec

    return msgspec.json.format(data, indent=2)


def plain(value: object) -> Any:
    """A frozen dataclass without pairs inside, as JSON knows it."""
    import msgspec

    return msgspec.to_builtins(value)


def chunk_object(chunk: Chunk) -> Object:
    """A chunk or scored chunk."""
    from dowse.types import ScoredChunk

    row: Object = plain(chunk)
    scores: Object = {"scores": plain(chunk.scores)} if isinstance(chunk, ScoredChunk) else {}
    return row | scores | {"meta": dict(chunk.meta)}


def report_object(report: IndexReport) -> Object:
    row: Object = plain(report)
    return row | {"skipped": dict(report.skipped), "scrubbed": dict(report.scrubbed)}


def result_object(result: QueryResult) -> Object:
    """A result in the shape of design section 8."""
    row: Object = plain(replace(result, chunks=()))
    metadata = result.query_metadata
    row["chunks"] = [chunk_object(chunk) for chunk in result.chunks]
    row["query_metadata"] |= {"stages": dict(metadata.stages), "counts": dict(metadata.counts)}
    if result.service_context is not None:
        row["service_context"] = {
            name: plain(context) | {"edges": [dict(edge) for edge in context.edges]}
            for name, context in result.service_context
        }
    return row


def explain_object(answer: WhyNot) -> Object:
    """Why, or why not, as `dowse explain --json` prints it."""
    row: Object = {name: getattr(answer, name) for name in ("query", "target", "rank", "tried")}
    row["chunk"] = chunk_object(answer.chunk)
    row["way"] = [plain(place) for place in answer.way]
    row["loss"] = None if answer.loss is None else plain(answer.loss)
    row["change"] = None
    if answer.change is not None:
        remedy = answer.change.remedy
        row["change"] = {"told": remedy.told, "fields": plain(dict(remedy.fields)), "rank": answer.change.rank}
    return row


def result_to_json(result: QueryResult) -> bytes:
    return encode(result_object(result))


def result_from_json(data: bytes | str) -> QueryResult:
    """The result that `result_to_json` wrote; BadRequestError when it is no such thing."""
    import msgspec

    from dowse.types import QueryResult

    try:
        return msgspec.convert(_with_pairs(msgspec.json.decode(data)), QueryResult)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as err:
        raise errors.BadRequestError(f"not a query result: {err}; give what `--json` printed") from err


def _with_pairs(row: Object) -> Object:
    """JSON objects become pairs again."""
    metadata = row["query_metadata"]
    context = row["service_context"]
    return row | {
        "chunks": [chunk | {"meta": list(chunk["meta"].items())} for chunk in row["chunks"]],
        "query_metadata": metadata
        | {"stages": list(metadata["stages"].items()), "counts": list(metadata["counts"].items())},
        "service_context": None
        if context is None
        else [
            (name, service | {"edges": [list(edge.items()) for edge in service["edges"]]})
            for name, service in context.items()
        ],
    }


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(item) for item in value]
    return value
