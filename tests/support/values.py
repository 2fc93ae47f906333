"""Changed copies of values, for tests that should not care which kind of value they hold."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def replace(value: T, **fields: Any) -> T:
    """Return a copy with other fields: of a struct as used inside, or of a dataclass as users hold it."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    return dataclasses.replace(value, **fields)  # type: ignore[type-var]
