"""Every error Dowse raises on purpose; a message names the thing, what was wrong and what to type next.

DowseError
├── BadRequestError          the caller can fix it: a blank query, an unknown field, a wrong flag
│   ├── ModelMismatchError   the index was embedded with another model
│   └── NotAllowedError      the operator of a server did not allow it
├── NotFoundError            no such chunk, document, file or model
│   └── NoIndexError         there is no index at that place
├── UnavailableError         may heal by itself or by an install; an optional stage that raises it is skipped
│   ├── BusyError            another process is writing
│   ├── DeadlineError        no time left
│   ├── MissingExtraError    an optional dependency is not installed
│   ├── ModelUnavailableError  weights cannot be had, or a remote model does not answer
│   ├── NoRecallError        every leg failed
│   └── StorageError         the disk is full or refuses to write
└── CorruptIndexError        a rebuild is needed
    └── SchemaVersionError   the index was written by another version of Dowse
"""


class DowseError(Exception):
    """The root of the tree."""


class BadRequestError(DowseError):
    """The caller can fix it."""


class ModelMismatchError(BadRequestError):
    """The index was embedded with another model than the one in use."""


class NotAllowedError(BadRequestError):
    """The operator of this server did not allow it."""


class NotFoundError(DowseError):
    """What was asked for does not exist."""


class NoIndexError(NotFoundError):
    """There is no index at that place."""


class UnavailableError(DowseError):
    """Something outside the query is down. The only error that degrades a result instead of ending it."""


class BusyError(UnavailableError):
    """Another process holds the writer's lock."""


class DeadlineError(UnavailableError):
    """No time was left."""


class MissingExtraError(UnavailableError):
    """An optional dependency is not installed."""


class ModelUnavailableError(UnavailableError):
    """A model's weights cannot be had, or its endpoint does not answer."""


class NoRecallError(UnavailableError):
    """Every leg failed, so there is nothing to rank. An empty list is different: it is an honest 'nothing found'."""


class StorageError(UnavailableError):
    """The disk is full, read-only or failing. Nothing acknowledged before is lost."""


class CorruptIndexError(DowseError):
    """A part of the index contradicts itself and has to be rebuilt."""


class SchemaVersionError(CorruptIndexError):
    """The index was written by another version of Dowse."""
