"""Generation of the derived parts: the folder that serves, and the place of each part in it.

    derived/CURRENT        the generation and the model that serve; replaced atomically
    derived/7/rows/        one row a chunk: ids, keys, filter columns, forward and inverted index
    derived/7/vectors-1/   vectors of model 1

A rebuild or a compaction makes a new generation, which then only grows, so a reader needs no lock.
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path
from zlib import crc32

import msgspec

from dowse.errors import CorruptIndexError
from dowse.store.files import Mark, make_folder, mark, replace_file
from dowse.store.segments.state import STATE
from dowse.store.sql.schema import CURRENT

Stamp = tuple[Mark | None, ...]
GENERATION = "generation"  # fact in SQLite: the last number; the derived parts may be deleted
UNPUBLISHED = 0  # number of the empty generation that an index has before its first publication, without files


class _Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    generation: int
    model: int | None = None
    crc: int | None = None  # of the two; none in an index of an earlier version

    @property
    def sum(self) -> int:
        return crc32(f"{self.generation} {self.model}".encode())


_decode_pointer = msgspec.json.Decoder(_Pointer).decode


class Generation(msgspec.Struct, frozen=True, dict=True):
    """Folder of one generation, and the model that serves from it."""

    derived: Path
    number: int
    model: int | None = None

    @cached_property
    def folder(self) -> Path:
        return self.derived / str(self.number)

    @cached_property
    def rows(self) -> Path:
        return self.folder / "rows"

    def vectors(self, model: int) -> Path:
        return self.folder / f"vectors-{model}"

    def serve(self) -> None:
        """Make this the generation that readers open."""
        pointer = _Pointer(self.number, self.model)
        replace_file(self.derived / CURRENT, msgspec.json.encode(msgspec.structs.replace(pointer, crc=pointer.sum)))

    def sweep(self) -> None:
        """Delete the generations that do not serve. Readers of one keep its files mapped."""
        for path in self.derived.iterdir():
            if path.is_dir() and path.name != str(self.number):
                shutil.rmtree(path, ignore_errors=True)

    def stamp(self) -> Stamp:
        """Return a value that changes with every publication; a few microseconds."""
        return tuple(map(mark, self._marked))

    @cached_property
    def _marked(self) -> tuple[str, ...]:
        """Paths of the stamp, made once: every query takes a stamp."""
        paths = [self.derived / CURRENT, self.rows / STATE]
        if self.model is not None:
            paths.append(self.vectors(self.model) / STATE)
        return tuple(map(str, paths))


def current(derived: Path) -> Generation | None:
    """Return the generation that serves; None when there is none yet."""
    try:
        pointer = _decode_pointer((derived / CURRENT).read_bytes())
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise CorruptIndexError(f"{derived / CURRENT} cannot be read ({err}); run `dowse rebuild`") from err
    if pointer.crc not in (None, pointer.sum) or pointer.generation == UNPUBLISHED:
        raise CorruptIndexError(f"{derived / CURRENT} does not match its checksum; run `dowse rebuild`")
    return Generation(derived, pointer.generation, pointer.model)


def following(derived: Path, last: int) -> Generation:
    """Return a generation with an unused number, also by deleted ones: readers keep mappings by number."""
    make_folder(derived)
    numbers = [int(path.name) for path in derived.iterdir() if path.name.isdigit()]
    return Generation(derived, max(last, *numbers, 0) + 1)
