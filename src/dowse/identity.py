"""Hashes and ids, equal on every machine and in every run."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from dowse.types import Chunk, ChunkId, Level

_PLACE_DIGITS = 4  # of a chunk id: more values than an index of millions has pages


def bytes_hash(data: bytes) -> str:
    """Return 32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def text_hash(text: str) -> str:
    return bytes_hash(text.encode("utf-8", "surrogatepass"))


def document_id(source: str, path: str) -> str:
    """Return the id of a file of a source, independent of its content."""
    return text_hash(f"{source}\0{path}")[:16]


def chunk_id(source_uri: str, level: Level, text: str, occurrence: int = 0) -> ChunkId:
    """Return the id of a chunk; `occurrence` counts equal texts of one level in one document, from 0.

    The first digits depend on the source alone, so that the chunks of a document are neighbours in every index over
    ids: an update of 20 chunks changes 4 pages of SQLite instead of 25. The others distinguish 100,000 chunks of one
    document, with a chance of collision of 2e-5.
    """
    return _place(source_uri) + text_hash(f"{source_uri}\0{level}\0{occurrence}\0{text}")[: 16 - _PLACE_DIGITS]


@lru_cache(1024)  # callers name the chunks of a document one after the other
def _place(source_uri: str) -> str:
    return text_hash(source_uri)[:_PLACE_DIGITS]


def embedded_text(chunk: Chunk) -> str:
    """Return the text to embed; without the file path, so that a moved file keeps its vectors."""
    return f"{chunk.context_prefix}\n{chunk.text}" if chunk.context_prefix else chunk.text


def content_hash(context_prefix: str, text: str) -> str:
    """Return the hash of the embedded text of a chunk that is not made yet."""
    return text_hash(f"{context_prefix}\n{text}" if context_prefix else text)


def searchable_text(chunk: Chunk) -> str:
    """Return the text of both word legs: prefix, path words and text."""
    return "\n".join(filter(None, (chunk.context_prefix, chunk.file_path, chunk.text)))


def id_number(chunk_id: ChunkId) -> int:
    """Return the id as the 64-bit number of arrays; a hash for an id that a store of the user made."""
    try:
        return int(chunk_id, 16) if len(chunk_id) == 16 else _hashed(chunk_id)
    except ValueError:
        return _hashed(chunk_id)


def _hashed(chunk_id: str) -> int:
    return int(text_hash(chunk_id)[:16], 16)


def number_id(number: int) -> ChunkId:
    return f"{number:016x}"
