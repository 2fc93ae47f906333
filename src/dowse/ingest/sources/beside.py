"""A file and the path of another one in its source go in; the other one's bytes come out, where it can be had.

Readers that need more than one file to understand one, as an export's list of people, look here. What lies in no
folder and no archive (a revision of a repository) has nothing beside it.
"""

from __future__ import annotations

import os

from dowse.errors import BadRequestError
from dowse.ingest.sources.archives import contents
from dowse.ingest.sources.content import Contents, read_contents
from dowse.ingest.sources.requests import MARK
from dowse.ports import SourceFile

LARGEST_BYTES = 64 << 20  # chosen: the list of people of a very large company


def beside(file: SourceFile, path: str) -> bytes | None:
    """Another file of the same source, by its path inside it."""
    if not file.full_path or ".." in path.split("/"):
        return None
    if MARK in file.path:
        archive, inner = file.full_path.split(MARK)[0], path.partition(MARK)[2]
        return _unpacked(archive, inner) if inner and os.path.isfile(archive) else None
    if not file.full_path.endswith("/" + file.path):
        return None  # a link: what lies beside its target is not what lies beside it
    found = read_contents(file.full_path[: -len(file.path)] + path, LARGEST_BYTES, sniff=False)
    return found.data if isinstance(found, Contents) else None


def _unpacked(archive: str, inner: str) -> bytes | None:
    try:
        for _, data in contents(archive, [inner, f"./{inner}"], LARGEST_BYTES):
            return data if isinstance(data, bytes) else None
    except BadRequestError:
        return None  # the archive itself is told of where it is read
    return None
