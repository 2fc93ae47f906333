"""Names for things: hashes that are the same on every machine and in every run."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from dowse.types import Chunk, ChunkId, Level

_PLACE_DIGITS = 4  # of a chunk's id: more places than an index of millions has pages


def bytes_hash(data: bytes) -> str:
    """32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def text_hash(text: str) -> str:
    return bytes_hash(text.encode("utf-8", "surrogatepass"))


def document_id(source: str, path: str) -> str:
    """The same file of the same source keeps its id whatever is in it."""
    return text_hash(f"{source}\0{path}")[:16]


def chunk_id(source_uri: str, level: Level, text: str, occurrence: int = 0) -> ChunkId:
    """`occurrence` counts equal texts of one level in one document, from 0: boilerplate must not collide.

    The first digits are of the source alone, so that the chunks of a document lie side by side in every index over
    ids: an update of 20 chunks changes 4 pages of SQLite there instead of 25. What is left tells 100,000 chunks of one
    document apart but for a chance of 2e-5.
    """
    return _place(source_uri) + text_hash(f"{source_uri}\0{level}\0{occurrence}\0{text}")[: 16 - _PLACE_DIGITS]


@lru_cache(1024)  # the chunks of a document are named one after the other
def _place(source_uri: str) -> str:
    return text_hash(source_uri)[:_PLACE_DIGITS]


def embedded_text(chunk: Chunk) -> str:
    """What is embedded. Without the file path, so that a moved file embeds nothing again."""
    return f"{chunk.context_prefix}\n{chunk.text}" if chunk.context_prefix else chunk.text


def searchable_text(chunk: Chunk) -> str:
    """What both word legs index: prefix, path words and text."""
    return "\n".join(filter(None, (chunk.context_prefix, chunk.file_path, chunk.text)))


def id_number(chunk_id: ChunkId) -> int:
    """The id as the 64-bit number that arrays hold."""
    return int(chunk_id, 16)


def number_id(number: int) -> ChunkId:
    return f"{number:016x}"
