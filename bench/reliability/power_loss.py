"""Loss of power: system calls of a writer are logged, and the folder is rebuilt as a crash could have left it.

The model: a write is safe after an fsync of its file, a new, renamed or deleted name after an fsync of its folder (a
new one also after that of its file). Of what is not safe, names survive up to a random one a folder, and every write is
kept, lost or halved. Then the index is opened as after a restart: every acknowledged document must be there.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dowse.errors import CorruptIndexError
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import arrays
from dowse.store.verify import verify

_WRITER = """
import sys, dowse
with dowse.open(sys.argv[1], embedder="hash") as engine:
    for number in range(int(sys.argv[2])):
        same = {"id": "same", "text": f"turn{number} common"}
        engine.add([{"id": f"{number}", "text": f"word{number} common"}, same])
        print(f"acked {number}", flush=True)
        if number % 5 == 4:
            engine.rebuild()
"""
_CALLS = "openat,pwrite64,write,ftruncate,fsync,fdatasync,rename,unlink,unlinkat,mkdir,rmdir"
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) = (\d+)(?:<([^>]*)>)?", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass
class _File:
    """A file by its writes: start and bytes, or a new size without bytes; the first are safe."""

    writes: list[tuple[int, bytes | None]] = field(default_factory=list)
    safe: int = 0
    end: int = 0  # of plain writes


@dataclass
class _Name:
    """A change of a name; safe when its folder was synced."""

    kind: str
    path: str
    to: str = ""
    file: _File | None = None
    safe: bool = False


class Crash:
    """State of a folder while a log is replayed, and what is left of it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: dict[str, _File] = {}
        self._names: list[_Name] = []
        self.acked = -1

    def replay(self, call: str, arguments: str, result: int, made: str) -> None:
        texts = [bytes.fromhex(each.replace("\\x", "")) for each in _TEXT.findall(arguments)]
        place = _plain(arguments.split("<", 1)[1].split(">", 1)[0]) if "<" in arguments else ""
        if call in ("write", "pwrite64") and texts[0].startswith(b"acked ") and not place.startswith(self._root):
            self.acked = int(texts[0].split()[1])
        elif call == "openat" and _plain(made).startswith(self._root):
            self._opened(_plain(made), arguments)
        elif call in ("write", "pwrite64", "ftruncate") and place in self._files:
            file, numbers = self._files[place], re.findall(r", (\d+)", _TEXT.sub("", arguments))
            if call == "ftruncate":
                file.writes.append((int(numbers[0]), None))
            else:
                start = int(numbers[1]) if call == "pwrite64" else file.end
                file.writes.append((start, texts[0]))
                file.end = start + len(texts[0]) if call == "write" else file.end
        elif call in ("fsync", "fdatasync"):
            self._synced(place)
        elif texts and texts[0].decode().startswith(self._root):
            path = texts[0].decode()
            if call == "rename":
                self._names.append(_Name("rename", path, texts[1].decode(), self._files[path]))
                self._files[texts[1].decode()] = self._files.pop(path)
            elif call in ("unlink", "rmdir", "unlinkat"):
                self._files.pop(path, None)
                self._names.append(_Name("delete", path))
            elif call == "mkdir":
                self._names.append(_Name("folder", path))

    def _opened(self, path: str, arguments: str) -> None:
        if path in self._files:
            if "O_TRUNC" in arguments:
                self._files[path].writes.append((0, None))
                self._files[path].end = 0
        elif "O_CREAT" in arguments:
            self._files[path] = _File()
            self._names.append(_Name("file", path, file=self._files[path]))

    def _synced(self, place: str) -> None:
        file = self._files.get(place)
        if file is not None:
            file.safe = len(file.writes)
        for name in self._names:
            if os.path.dirname(name.to or name.path) == place or (
                name.kind == "file" and name.file is file is not None
            ):
                name.safe = True

    def leave(self, folder: Path, draw: random.Random) -> None:
        """Write what the crash leaves."""
        by_folder: dict[str, list[_Name]] = {}
        for name in self._names:
            by_folder.setdefault(os.path.dirname(name.to or name.path), []).append(name)
        lost: set[int] = set()
        for names in by_folder.values():
            last = max((at for at, each in enumerate(names) if each.safe), default=-1)
            kept = draw.randint(last + 1, len(names))
            lost |= {id(each) for each in names[kept:] if not each.safe}
        found: dict[str, _File | None] = {}
        for name in self._names:
            if id(name) in lost:
                continue
            if name.kind == "rename":
                found.pop(name.path, None)
            found[name.to or name.path] = name.file
            if name.kind == "delete":
                gone = [path for path in found if path == name.path or path.startswith(f"{name.path}/")]
                for path in gone:
                    del found[path]
        folder.mkdir()
        for path, file in found.items():
            target = folder / os.path.relpath(path, self._root)
            if file is None:
                target.mkdir(parents=True, exist_ok=True)
            elif target.parent.is_dir():
                target.write_bytes(_content(file, draw))


def _plain(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode() if "\\x" in text else text


def _content(file: _File, draw: random.Random) -> bytes:
    data = bytearray()
    for number, (start, piece) in enumerate(file.writes):
        fate = "keep" if number < file.safe else draw.choice(("keep", "lose", "half"))
        if fate == "lose":
            continue
        if piece is None:
            data = data[:start].ljust(start, b"\0")
            continue
        piece = piece if fate == "keep" else piece[: len(piece) // 2]
        data = data.ljust(start + len(piece), b"\0")
        data[start : start + len(piece)] = piece
    return bytes(data)


def logged(folder: Path, batches: int) -> tuple[str, list[tuple[str, str, int, str]]]:
    """Run the writer under strace; return its folder and its calls."""
    root, log = folder / "traced", folder / "log"
    command = ["strace", "-f", "-qq", "-s", "4000000", "-y", "-xx", "-e", f"trace={_CALLS}", "-o", str(log)]
    subprocess.run([*command, sys.executable, "-c", _WRITER, str(root), str(batches)], check=True, capture_output=True)
    found = (_LINE.match(line) for line in log.read_text("utf-8").splitlines())
    return str(root), [(each[1], each[2], int(each[3]), each[4] or "") for each in found if each]


def crashes(folder: Path, points: int, batches: int) -> Iterator[tuple[int, str]]:
    """Yield by crash point the documents that were acknowledged, and what is wrong: nothing, or a text."""
    root, calls = logged(folder, batches)
    draw, copy = random.Random(11), folder / "left"
    boot, arrays._boot = arrays._boot, lambda: "another boot"  # type: ignore[assignment]
    try:
        for _ in range(points):
            crash, end = Crash(root), draw.randrange(len(calls))
            for call in calls[:end]:
                crash.replay(*call)
            crash.leave(copy, draw)
            yield crash.acked + 1, "" if crash.acked < 0 else _wrong(copy, crash.acked)
            shutil.rmtree(copy)
    finally:
        arrays._boot = boot


def _wrong(index: Path, acked: int) -> str:
    """Look read-only first, as a search would, then let a writer repair what was lost."""
    store = EmbeddedStore(index, read_only=True)
    try:
        store.reader()
    except (CorruptIndexError, FileNotFoundError):
        pass  # it says so: no answer is no wrong answer
    finally:
        store.close()
    store = EmbeddedStore(index)
    try:
        reader = store.reader()
        lost = [n for n in range(acked + 1) if not len(reader.search_words("bm25_code", [f"word{n}"], 3, ()).ids)]
        bad = [check.detail for check in verify(store, deep=True) if check.state == "fail"]
        return f"{lost} lost, {bad}" if lost or bad else ""
    finally:
        store.close()
