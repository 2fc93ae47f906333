"""Masked reading: the document of a file without its secrets, and their number.

Every document passes here, whichever reader made it. The file is masked before it is read, so that no hash or summary
holds a secret, and the document again, for secrets that were packed or encoded in the file.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.ingest.privacy.rewrite import rewritten
from dowse.ingest.privacy.secrets import mask, mask_key_lines, masked_file
from dowse.ports import Reader, SourceFile
from dowse.private_hash import private_hash, private_size
from dowse.types import Document

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_masked(reader: Reader, file: SourceFile) -> tuple[Document, int]:
    """Read a file; return its document and the number of masked secrets."""
    clean, count = masked_file(file)
    document, more = reader.read(clean), 0
    is_cut = _is_cut_from(document, clean.data)
    if not is_cut:
        document, more = masked(document)
    if not is_cut or b"\\u" in clean.data or b"&#" in clean.data:  # an escape can be half of a character
        document = _encodable(document)
    if (
        count + more
    ):  # the hash of the unmasked bytes shows whether the file changed, and to no one else what was masked
        document = replace(document, content_hash=private_hash(file.data), size_bytes=private_size(len(file.data)))
    return document, count + more


def _encodable(document: Document) -> Document:
    """Replace lone surrogates, which no store can write; BadRequestError if some are in places without a text."""
    try:
        msgspec.msgpack.encode(document)
    except UnicodeEncodeError:
        document = rewritten(document, lambda text: _SURROGATE.sub("\ufffd", text))
    else:
        return document
    try:
        msgspec.msgpack.encode(document)
    except UnicodeEncodeError as err:
        raise BadRequestError("skipped: a name in it is not valid Unicode (lone surrogate); rename it") from err
    return document


def masked(document: Document) -> tuple[Document, int]:
    """Mask secrets in all texts of a document; count those in searchable chunks."""
    if not _may_hold_secrets(document):
        return document, 0
    left = Counter(chunk.text for chunk in document.chunks if chunk.level == "chunk")  # a parent may hold the same text
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
    """Test all texts at once, which takes a tenth of the time: nearly always there is no secret."""
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    rewritten(document, keep)
    all_texts = "\n".join(dict.fromkeys(texts))
    return "PRIVATE KEY" in all_texts or mask(all_texts)[1] > 0


def _is_cut_from(document: Document, data: bytes) -> bool:
    """Test whether all chunks are verbatim parts of the file, in order, and so as clean as it."""
    at = 0
    for chunk in document.chunks:
        if chunk.level == "chunk":
            part = chunk.text.encode("utf-8", "surrogatepass")
            at = data.find(part, max(0, at - len(part)))  # chunks overlap
            if at < 0:
                return False
    return True
