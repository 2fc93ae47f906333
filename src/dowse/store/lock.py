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
        with storing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path.parent))
        try:
            self._acquire(path.parent, time.monotonic() + wait_s)
            with storing(path):
                # The process id for those who wait, over the last holder's, so that a full disk has room for it.
                os.ftruncate(self._file, os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0))
        except BaseException:
            self.close()
            raise

    def _acquire(self, folder: Path, give_up_s: float) -> None:
        while True:
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                if time.monotonic() >= give_up_s:
                    holder = os.pread(self._file, 64, 0).decode("ascii", "replace").strip()
                    who = f" (process {holder})" if holder else ""
                    raise BusyError(
                        f"another process{who} is writing to {folder}; wait until it ends, or use `dowse index --wait`"
                    ) from err
            time.sleep(_POLL_S)

    def close(self) -> None:
        os.close(self._file)
