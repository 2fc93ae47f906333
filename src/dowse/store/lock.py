"""Lock of the one writer, across processes; the operating system releases it when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from dowse.errors import BusyError
from dowse.store.files import file_mode, storing

_POLL_S = 0.05  # chosen: quick enough for a person, cheap enough for a day


class WriterLock:
    """Lock file, held from construction to `close`."""

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path.parent))
        except OSError:
            with storing(path):
                raise
        give_up = time.monotonic() + wait_s
        while not self._try():
            if time.monotonic() >= give_up:
                holder = os.pread(self._file, 64, 0).decode("ascii", "replace").strip()
                os.close(self._file)
                who = f" (process {holder})" if holder else ""
                raise BusyError(
                    f"another process{who} is writing to {path.parent}; wait for it, or run again with --wait"
                )
            time.sleep(_POLL_S)
        self._sign(path)

    def _sign(self, path: Path) -> None:
        """Write the process id for those who wait, over the last holder's, so that a full disk has room for it."""
        name = f"{os.getpid()}\n".encode()
        try:
            os.ftruncate(self._file, os.pwrite(self._file, name, 0))
        except BaseException:
            self.close()
            with storing(path):
                raise

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._file)
