"""State of a part: a publication enters as a line of a file, the last line leaves.

To append a line takes 4 µs, to replace a file 130, and an update publishes twice. A line begins with its CRC-32, so a
reader recognises a complete one. Every line makes the file longer, which readers notice. A long file is replaced by
one with only the last line.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from zlib import crc32

import msgspec

from dowse.errors import CorruptIndexError
from dowse.store.files import mark, replace_file, storing, sync_folder, write_at

STATE = "state.jsonl"
FORMAT = 4  # 2: the inverted index is ours, and its runs lie beside the rows; 3: a vector is kept in 16 bits; 4: lines
_SUM_CHARS = 8  # of the checksum, in hexadecimal, with a space after it
_MOST_LINES = 32  # of the length of the last; chosen: a reader reads all of them
_LOOKS, _PAUSE_S = 20, 0.001  # reads of a line that is being written, which takes microseconds; chosen


class FileState(msgspec.Struct, frozen=True):
    """Published bytes of a file, with the checksums of its whole blocks and of the rest."""

    bytes: int = 0
    blocks: tuple[int, ...] = ()
    tail: int = 0


class PartState(msgspec.Struct, frozen=True):
    """Published state of a part."""

    rows: int
    seq: int  # the last change of the truth that is in it
    format: int = FORMAT
    files: dict[str, FileState] = {}
    facts: dict[str, float] = {}  # small numbers that belong to the rows
    boot: str = ""  # the boot in which it was written; empty: all of it was forced to the disk before


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PartState).decode


def read_state(folder: Path) -> PartState:
    try:
        state = _decode(_last_line(folder)[_SUM_CHARS + 1 :])
    except FileNotFoundError as err:
        raise CorruptIndexError(f"{folder} has no {STATE}; run `dowse rebuild`") from err
    except msgspec.DecodeError as err:
        raise CorruptIndexError(f"{folder / STATE} cannot be read ({err}); run `dowse rebuild`") from err
    if state.format != FORMAT:
        raise CorruptIndexError(f"{folder} has format {state.format}, not {FORMAT}; run `dowse rebuild`")
    return state


def state_line(state: PartState) -> bytes:
    """Return a state as a line with its checksum."""
    text = _encode(state)
    return b"%08x %b\n" % (crc32(text), text)


class StateFile:
    """State file of a part, for its writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = f"{folder}/{STATE}"
        self._handle: int | None = None
        self.mark = mark(self._path)  # of the last line that was read or written here

    def still(self) -> bool:
        """Check that no other writer has written since. Only 33 lines in a clock tick could restore a mark."""
        return self.mark is not None and mark(self._path) == self.mark

    def write(self, state: PartState, *, sync: bool) -> None:
        """Publish a state."""
        line = state_line(state)
        if self.mark is None or self.mark[2] > _MOST_LINES * len(line):
            self.close()
            replace_file(self._folder / STATE, line, sync=sync)
        else:
            try:
                self._append(line, self.mark[2], sync)
            except OSError:
                with storing(self._folder, STATE):
                    raise
        self.mark = mark(self._path)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self, line: bytes, end: int, sync: bool) -> None:
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            write_at(self._handle, line, end)
        except OSError:  # a full disk: half a line would hide the lines before it
            os.ftruncate(self._handle, end)
            raise
        if sync:
            os.fsync(self._handle)
            sync_folder(self._folder)


def _last_line(folder: Path) -> bytes:
    """Return the last line. An incomplete one is being written, or is damage."""
    for _ in range(_LOOKS):
        data = (folder / STATE).read_bytes()
        line = data[data.rfind(b"\n", 0, -1) + 1 :]
        if line[:_SUM_CHARS] == b"%08x" % crc32(line[_SUM_CHARS + 1 : -1]) and line.endswith(b"\n"):
            return line
        time.sleep(_PAUSE_S)
    raise CorruptIndexError(f"{folder / STATE} is cut short; run `dowse rebuild`")
