"""Readers by name, as the pipeline makes them."""

from __future__ import annotations

from dowse.ingest.readers.registry import find_readers
from dowse.ports import Reader


def reader_of(name: str) -> Reader:
    """Return a new reader."""
    return find_readers()[name]()
