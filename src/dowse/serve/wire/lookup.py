"""Symbols, outlines and neighbours become JSON objects: what `dowse symbols|outline|related --json` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dowse.serve.wire.result import Object, chunk_object, plain

if TYPE_CHECKING:
    from dowse.lookup.outline import Outline
    from dowse.lookup.related import Related
    from dowse.lookup.symbols import Symbol


def symbol_object(symbol: Symbol) -> Object:
    """The definition's own fields; `match` says how well the name fits."""
    chunk = symbol.chunk
    return {
        "name": symbol.name,
        "match": symbol.match,
        "kind": symbol.kind,
        "signature": symbol.signature,
        "summary": chunk.summary,
        "chunk_id": chunk.id,
        "source_uri": chunk.source_uri,
        "file_path": chunk.file_path,
        "start_line": symbol.start_line,
        "end_line": symbol.end_line,
        "language": chunk.language,
        "service_name": chunk.service_name,
        "corpus_type": chunk.corpus_type,
    }


def outline_object(outline: Outline) -> Object:
    row: Object = plain(outline)
    return row


def related_object(related: Related) -> Object:
    return {
        "chunks": [chunk_object(chunk) for chunk in related.chunks],
        "neighbours": [
            {
                "relation": each.relation,
                "direction": each.direction,
                "weight": each.weight,
                "sentence": each.sentence,
                "chunk": chunk_object(each.chunk),
            }
            for each in related.neighbours
        ],
        "total": related.total,
    }
