"""A file of plain prose goes in; a Document of overlapping windows comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dowse.ingest.chunking.document import Heading, Piece, build, decode, file_name
from dowse.ingest.chunking.pack import PROSE, windows
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.types import Document


@dataclass(frozen=True)
class TextReader:
    """Reads anything that decodes. Without structure to go by, neighbours overlap so that no sentence is lost."""

    name: str = "text"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        spans = windows(text, (0, len(text)), PROSE.fitted(text))
        return build(file, classify(file.path), text, Heading(file_name(file)), map(Piece, spans))
