"""Keyed hashes and rounded sizes of files with masked secrets: the index alone confirms no guess.

The key is in the user's settings folder, or DOWSE_HASH_KEY has one for a team that shares an index. Without the key, a
changed time stamp means that the file is read once more.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from dowse.config import user_folder
from dowse.identity import bytes_hash

VARIABLE = "DOWSE_HASH_KEY"
SIZE_STEP = 256  # chosen: hides the length of a password, and no change of a file that keeps its time stamp
_FILE = "hash_key"
_KEY_BYTES = 32


def private_hash(data: bytes) -> str:
    """Return 32 hexadecimal digits that only the holder of the key can compute."""
    key = _key(os.environ.get(VARIABLE, ""), user_folder("config") / _FILE)
    return blake2b(data, key=key, digest_size=16).hexdigest()


def private_size(size_bytes: int) -> int:
    """Return the size, rounded up."""
    return -(-size_bytes // SIZE_STEP) * SIZE_STEP


def is_same_content(data: bytes, stored: str) -> bool:
    """Test whether a stored hash, with or without the key, is of these bytes."""
    return stored in (bytes_hash(data), private_hash(data))


def is_same_size(size_bytes: int, stored: int) -> bool:
    return stored in (size_bytes, private_size(size_bytes))


@lru_cache(4)
def _key(given: str, file: Path) -> bytes:
    """Return the key of the team or of the user; create the latter when it is first needed."""
    if given:
        return blake2b(given.encode(), digest_size=_KEY_BYTES).digest()
    try:
        if not file.exists():
            _create(file)
        key = file.read_bytes()
    except OSError:  # a read-only home: files are read again when their time stamp changes
        key = b""
    return key if len(key) == _KEY_BYTES else secrets.token_bytes(_KEY_BYTES)


def _create(file: Path) -> None:
    """Write a new key under its name at once; if two processes do so, one key wins."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = file.with_name(f".{_FILE}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(scratch, file)
    except FileExistsError:
        pass
    finally:
        scratch.unlink()
