"""Errors of Dowse. A message names the thing, the fault and the command to type next.

DowseError
├── BadRequestError          the caller can fix it: a blank query, an unknown field, a wrong flag
│   ├── ModelMismatchError   the index was embedded with another model
│   └── NotAllowedError      the operator of the server has not enabled it
├── NotFoundError            no such chunk, document, file or model
│   └── NoIndexError         there is no index in that folder
├── UnavailableError         temporary, or cured by an install; an optional stage that raises it is skipped
│   ├── DeadlineError        no time left
│   ├── MissingExtraError    an optional dependency is not installed
│   ├── ModelUnavailableError  weights are missing, or a remote model does not answer
│   └── NoRecallError        every leg failed
├── BusyError                another process is writing
├── StorageError             the disk is full or read-only
└── CorruptIndexError        the index needs a rebuild
    └── SchemaVersionError   the index was written by another version of Dowse
"""


class DowseError(Exception):
    """Root of all errors of Dowse."""


class BadRequestError(DowseError):
    """The request is wrong."""


class ModelMismatchError(BadRequestError):
    """The index was embedded with another model than the one in use."""


class NotAllowedError(BadRequestError):
    """The operator of this server has not enabled this operation."""


class NotFoundError(DowseError):
    """The requested thing does not exist."""


class NoIndexError(NotFoundError):
    """There is no index in that folder."""


class UnavailableError(DowseError):
    """A component is unavailable. The only error that degrades a result instead of ending the query."""


class DeadlineError(UnavailableError):
    """The deadline has passed."""


class MissingExtraError(UnavailableError):
    """An optional dependency is not installed."""


class ModelUnavailableError(UnavailableError):
    """The weights of a model are missing, or its endpoint does not answer."""


class NoRecallError(UnavailableError):
    """Every leg failed, so there is nothing to rank. An empty list is no error."""


class BusyError(DowseError):
    """Another process holds the write lock."""


class StorageError(DowseError):
    """The disk is full, read-only or failing. Acknowledged writes are safe."""


class CorruptIndexError(DowseError):
    """A part of the index is inconsistent and needs a rebuild."""


class SchemaVersionError(CorruptIndexError):
    """The index was written by another version of Dowse."""
