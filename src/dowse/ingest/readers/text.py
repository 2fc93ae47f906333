"""Reader of plain text: a Document of overlapping windows."""

from __future__ import annotations

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.chunking.pack import PROSE, windows
from dowse.ports import SourceFile
from dowse.types import Document


def read_text(file: SourceFile) -> Document:
    """Read any file that decodes. Neighbours overlap, because a cut may split a sentence."""
    text = decode(file.data)
    return build(file, text, map(ChunkSpan, windows(text, (0, len(text)), PROSE.fitted(text))))
