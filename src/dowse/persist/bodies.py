"""A chunk goes in; the bytes that SQLite keeps of it come out, and the chunk again from those."""

from __future__ import annotations

from dataclasses import MISSING, fields
from operator import attrgetter

import msgspec

from dowse.errors import CorruptIndexError
from dowse.types import Chunk

_BY_DEFAULT = {each.name: each.default for each in fields(Chunk)}  # a field that has none equals nothing
_values = attrgetter(*_BY_DEFAULT)
_Body = msgspec.defstruct(
    "_Body",
    [(name, object) if usual is MISSING else (name, object, usual) for name, usual in _BY_DEFAULT.items()],
    omit_defaults=True,
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Chunk).decode


def encoded(chunk: Chunk) -> bytes:
    """As JSON, without what is as it is by default: two thirds of the bytes. A struct leaves it out by itself, in less
    than half of the time that it takes here.
    """
    return _encode(_Body(*_values(chunk)))


def decoded(body: bytes, connections: int | None = None) -> Chunk:
    """With the number of chunks that it is tied to, where that is known better than by the body."""
    try:
        chunk = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise CorruptIndexError(f"a stored chunk cannot be read ({err}); run `dowse doctor --verify`") from err
    # msgspec leaves out what is by default, which is found all the same, but not by one who looks at all that it has.
    # No one else has the chunk yet: this is cheaper than a copy.
    whole = _BY_DEFAULT | vars(chunk)
    if connections is not None:
        whole["connection_count"] = connections
    object.__setattr__(chunk, "__dict__", whole)
    return chunk
