"""Texts that may name places of this machine go in; the same texts come out with names of sources in their stead."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dowse.types import Source


@dataclass(frozen=True)
class Privacy:
    """What the people who ask may know of the machine that answers. `absolute` says: everything."""

    index: Path
    absolute: bool = False

    def text(self, text: str, sources: Sequence[Source]) -> str:
        """An error or a note. A root becomes its source's name; any other absolute path keeps only its last part."""
        if self.absolute:
            return text
        for source in sorted(sources, key=lambda each: -len(each.root)):
            text = text.replace(source.root.rstrip("/") + "/", source.name + "/").replace(source.root, source.name)
        text = text.replace(str(self.index), "the index")
        return _ABSOLUTE.sub(lambda found: os.path.basename(found[0].rstrip("/")) or "/", text)

    def place(self, source: Source, path: str) -> str | None:
        """Where a file lies on this machine, if that may be told."""
        return str(Path(source.root) / path) if self.absolute else None


# Our own routes begin with /v1/ and are no secret.
_ABSOLUTE = re.compile(r"(?<![\w.:/~])/(?!v1/)(?:[\w.@+-]+/)+[\w.@+-]+/?")
