"""Factories of small documents, chunks and vectors with real ids and hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dowse.identity import chunk_id, document_id, embedded_text, id_number, text_hash
from dowse.ports import Ids, Matrix, Vector
from dowse.types import Chunk, ChunkId, Document, Edge
from values import replace

SOURCE = "docs"
PLAIN = Chunk(id="", document_id="", text="", corpus_type="CODE_LOGIC", source_uri="")


def document(path: str, *texts: str, like: Chunk = PLAIN, source: str = SOURCE) -> Document:
    """Make a document with a chunk for each text; other fields are copied from `like`."""
    return of_chunks(path, [replace(like, text=text) for text in texts], source=source)


def of_chunks(path: str, chunks: Sequence[Chunk], edges: Sequence[Edge] = (), source: str = SOURCE) -> Document:
    """Make a document of these chunks and set their ids and hashes."""
    seen: Counter[tuple[str, str]] = Counter()
    own = []
    for chunk in chunks:
        occurrence = seen[chunk.level, chunk.text]
        seen[chunk.level, chunk.text] += 1
        own.append(
            replace(
                chunk,
                id=chunk_id(f"{source}/{path}", chunk.level, chunk.text, occurrence),
                document_id=document_id(source, path),
                document_source=source,
                source_uri=f"{source}/{path}",
                content_hash=text_hash(embedded_text(chunk)),
            )
        )
    return Document(
        id=document_id(source, path),
        source=source,
        path=path,
        title=path,
        content_hash=text_hash("\n".join(chunk.text for chunk in own)),
        chunks=tuple(own),
        edges=tuple(edges),
    )


def ids(*chunks: ChunkId) -> Ids:
    return np.array([id_number(each) for each in chunks], np.uint64)


def vector(content_hash: str, dimension: int) -> Vector:
    """Make a unit vector from the hash alone, so that every store gets the same."""
    drawn = np.random.default_rng(int(content_hash[:12], 16)).normal(size=dimension)
    return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def vectors(content_hashes: Sequence[str], dimension: int) -> Matrix:
    return np.array([vector(each, dimension) for each in content_hashes], np.float32).reshape(-1, dimension)
