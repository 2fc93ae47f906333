"""Git processes that never read a repository's own settings.

Settings can name programs: pagers, filters, signature checks, file monitors, helpers of remotes. A list of switches
against them is never complete. So git gets a temporary folder instead of the repository's own: HEAD is a copy, refs and
objects are symlinks, and the settings hold nothing except the formats of both. Without remotes there is no network.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import IO

from dowse.errors import UnavailableError

PROCESS_S = 60.0  # chosen: the log of 100,000 commits takes 20 s; a FIFO among the refs blocks for ever
OUTPUT_BYTES = 256 << 20  # chosen: some two million paths; a tree that contains itself ten times over has more
_SMALL_BYTES = 1 << 16  # of HEAD, .git as a file, and config
_LINKED = ("objects", "refs", "packed-refs", "shallow", "reftable")
_FORMATS = {"objectformat": ("sha256",), "refstorage": ("reftable",)}  # extensions that git needs to know
_KEY = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*(?:[#;].*)?")


class GitFailedError(UnavailableError):
    """Error exit of git."""


def output(root: str, *arguments: str) -> bytes:
    """Run git to its end and return its output. Raises GitFailedError."""
    with running(root, *arguments, limit_s=PROCESS_S) as pipe:
        out = stream(pipe.stdout).read(OUTPUT_BYTES + 1)
        if len(out) > OUTPUT_BYTES:
            raise GitFailedError(f"git {arguments[0]} prints more than {OUTPUT_BYTES >> 20} MB in {root}")
        pipe.wait()
    if pipe.returncode:
        late = "it took too long" if pipe.returncode < 0 else f"exit code {pipe.returncode}"
        raise GitFailedError(f"git {arguments[0]} failed in {root}: {late}")
    return out


@contextmanager
def running(
    root: str, *arguments: str, stdin: int = subprocess.DEVNULL, limit_s: float | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run git on a repository; kill it after `limit_s` and when the block ends."""
    with tempfile.TemporaryDirectory(prefix="dowse-git-") as folder:
        _link(_repository(root), folder)
        # Without the user's settings too: a signature check of theirs may ask a key server.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment = kept | {
            "GIT_DIR": folder, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "",
        }  # fmt: skip
        try:
            pipe = subprocess.Popen(
                ["git", "--no-pager", *arguments],
                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder,
            )  # fmt: skip
        except OSError as err:
            raise UnavailableError(f"git cannot be run: {err.strerror}; install it to read repositories") from err
        alarm = Timer(limit_s, pipe.kill) if limit_s else None
        with pipe:
            try:
                if alarm:
                    alarm.daemon = True
                    alarm.start()
                yield pipe
            finally:
                if alarm:
                    alarm.cancel()
                if pipe.poll() is None:
                    pipe.kill()


def stream(end: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with it."""
    if end is None:
        raise ValueError("the process was started without this stream")
    return end


def _repository(root: str) -> str:
    """Return the folder that holds HEAD: `.git`, the one that a `.git` file names, or `root` if it is bare."""
    inner = os.path.join(root, ".git")
    if not os.path.lexists(inner):
        return root
    if os.path.isdir(inner):
        return inner
    kind, _, path = _small(inner).partition(":")
    if kind != "gitdir":
        raise GitFailedError(f"{inner} is neither a folder nor a file with a line `gitdir: PATH`")
    return os.path.join(root, path.strip())


def _link(repository: str, folder: str) -> None:
    """Fill a folder that git accepts as this repository."""
    shared = repository
    if os.path.lexists(common := os.path.join(repository, "commondir")):  # a linked work tree
        shared = os.path.join(repository, _small(common).strip())
    formats = _formats(os.path.join(shared, "config"))
    settings = f"[core]\n\tbare = true\n\trepositoryformatversion = {1 if formats else 0}\n"
    if formats:
        settings += "[extensions]\n" + "".join(f"\t{name} = {value}\n" for name, value in formats.items())
    for name, text in (("HEAD", _small(os.path.join(repository, "HEAD"))), ("config", settings)):
        with open(os.path.join(folder, name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    for name in _LINKED:
        target = os.path.realpath(os.path.join(shared, name))
        if os.path.exists(target):
            os.symlink(target, os.path.join(folder, name))


def _formats(file: str) -> dict[str, str]:
    """Read the formats of objects and refs from a repository's settings, and nothing else."""
    section, found = "", dict[str, str]()
    for line in _small(file).splitlines() if os.path.lexists(file) else ():
        if line.lstrip().startswith("["):
            section = line.strip().lower()
        elif section == "[extensions]" and (match := _KEY.fullmatch(line)):
            name, value = match[1].lower(), match[2].lower()
            if value in _FORMATS.get(name, ()):
                found[name] = value
    return found


def _small(path: str) -> str:
    """Read a small regular file; a FIFO or a device would block or never end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise GitFailedError(f"{path} is not a regular file")
            return os.fsdecode(file.read(_SMALL_BYTES))
    except OSError as err:
        raise GitFailedError(f"not a git repository ({path}: {err.strerror})") from err
