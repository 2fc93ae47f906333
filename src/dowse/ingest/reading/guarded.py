"""A reader and a file go in; the document comes out without the secrets of the file, and how many there were.

The one place that every document passes, whichever reader made it: the file is masked before it is read, so that no
hash or summary knows a secret, and the document once more, for what was packed or encoded in the file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dowse.identity import bytes_hash
from dowse.ingest.chunking.document import altered
from dowse.ingest.privacy.rewrite import rewritten
from dowse.ingest.privacy.secrets import mask, mask_key_lines, masked_file
from dowse.ingest.services.facts import with_facts
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document


def read_guarded(reader: Reader, file: SourceFile, service: str | None = None) -> tuple[Document, int]:
    """`service` is the one that the file's place says it belongs to; what the file itself says wins."""
    clean, count = masked_file(file)
    document, more = reader.read(clean), 0
    if not _is_cut_from(document, clean.data):
        document, more = masked(document)
    if clean is not file:  # whether the file changed is asked of its own bytes
        document = replace(document, content_hash=bytes_hash(file.data), size_bytes=len(file.data))
    return with_facts(_placed(document, service)), count + more


def masked(document: Document) -> tuple[Document, int]:
    """The document without secrets in any of its texts; counted are those that a search would have found."""
    if not _may_hold_secrets(document):
        return document, 0
    left = Counter(chunk.text for chunk in document.chunks if chunk.level == "chunk")  # a parent may say the same
    keys = any("PRIVATE KEY" in text for text in left)
    found = 0

    def change(text: str) -> str:
        nonlocal found
        clean, count = mask(text)
        if keys:
            clean, more = mask_key_lines(clean)
            count += more
        found += count if left[text] > 0 else 0
        left[text] -= 1
        return clean

    return rewritten(document, change), found


def _may_hold_secrets(document: Document) -> bool:
    """All its texts are looked through at once, which takes a tenth of the time: nearly always there is nothing."""
    texts: dict[str, None] = {}

    def keep(text: str) -> str:
        texts[text] = None
        return text

    rewritten(document, keep)
    together = "\n".join(texts)
    return "PRIVATE KEY" in together or mask(together)[1] > 0


def _is_cut_from(document: Document, data: bytes) -> bool:
    """Whether all its chunks are there in the file as they are, one behind the other or overlapping: then they are as
    clean as the file, and so is what was made of them.
    """
    at = stop = 0
    for chunk in document.chunks:
        if chunk.level == "chunk":
            part = chunk.text.encode("utf-8", "surrogatepass")
            # Most stand right behind the one before, or one or two empty lines below it: told at once, and searched
            # for only where they do not.
            for guess in range(stop, stop + 4):
                if data.startswith(part, guess):
                    at = guess
                    break
            else:
                at = data.find(part, max(0, at - len(part)))
                if at < 0:
                    return False
            stop = at + len(part)
    return True


def _placed(document: Document, service: str | None) -> Document:
    if not service:
        return document
    facts = tuple(replace(fact, service=fact.service or service) for fact in document.facts)
    return replace(document, chunks=tuple(_in(chunk, service) for chunk in document.chunks), facts=facts)


def _in(chunk: Chunk, service: str) -> Chunk:
    return chunk if chunk.service_name else altered(chunk, service_name=service)
