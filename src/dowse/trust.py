"""Trust record of this user: the indexes and project files that may name servers, models and folders.

An index or a `dowse.toml` may come with a clone. A server, a model or a folder outside its project that it names takes
effect only if this user gave that name on this machine, or trusts the folder (`dowse trust PATH`, DOWSE_TRUST).
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from dowse.errors import BadRequestError

VARIABLE = "DOWSE_TRUST"  # folders, separated as in PATH: for servers and CI
ANYTHING = "*"
_FILE = "trusted"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_PLAIN_MODEL = re.compile(r"[\w.-]+|hash:\d+")  # a name of the registry; others are folders, hub ids or addresses


class ParsedAddress(msgspec.Struct, frozen=True):
    """Address of a server, checked, and its origin in one spelling."""

    text: str
    origin: str  # scheme://host:port, in lower case


def parse_server(text: str) -> ParsedAddress | None:
    """Parse an address, in one place for every setting; None if the text is no address. Raises BadRequestError."""
    plain = text.strip()
    if not _SCHEME.match(plain):
        return None
    try:
        parts = urllib.parse.urlsplit(plain)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
        fine = port and parts.hostname and plain.isascii() and plain.isprintable() and not re.search(r"[\s\\]", plain)
    except ValueError:
        fine = False
    if not fine:
        raise BadRequestError(f"{text!r} is not the address of a server; write it as https://host/v1")
    if parts.username is not None or parts.password is not None:
        raise BadRequestError("the address of a server contains a user name or a password; remove it")
    rest = plain[len(parts.scheme) :]
    return ParsedAddress(parts.scheme + rest, f"{parts.scheme}://{parts.hostname}:{port}")


def is_plain_model(spec: str) -> bool:
    """Test whether a model needs no trust: it is in the registry, which knows its SHA-256, or is computed."""
    return _PLAIN_MODEL.fullmatch(spec.strip()) is not None


def is_below(path: Path, folder: Path) -> bool:
    """Test whether a path, with symlinks resolved, is a folder or lies in it."""
    real, base = os.path.realpath(path), os.path.realpath(folder)
    return real == base or real.startswith(base.rstrip("/") + "/")


def in_project(path: Path, index: Path) -> bool:
    """Test whether a path lies in the folder of an index; an index in the home folder or the root has no project."""
    project = index.absolute().parent
    return project not in (Path.home(), Path("/")) and is_below(path, project)


def is_trusted(owner: Path, name: str, env: Mapping[str, str] = os.environ) -> bool:
    """Test whether the user allowed `name` in this index or project file."""
    folders = [Path(each).expanduser() for each in env.get(VARIABLE, "").split(os.pathsep) if each]
    real = os.path.realpath(owner)
    return any(
        (allowed == ANYTHING and is_below(owner, Path(folder))) or (real, name) == (folder, allowed)
        for folder, allowed in [*((str(each), ANYTHING) for each in folders), *record(env)]
    )


def allow(owner: Path, name: str = ANYTHING, env: Mapping[str, str] = os.environ) -> None:
    """Record that the user gave `name` for this index or project file; ANYTHING trusts all that it names."""
    row = (os.path.realpath(owner), name)
    if row not in (rows := record(env)):
        _write([*rows, row], env)


def forget(owner: Path, env: Mapping[str, str] = os.environ) -> bool:
    """Remove all rows of an index, project file or folder; return whether there was one."""
    real = os.path.realpath(owner)
    rows = record(env)
    kept = [row for row in rows if row[0] != real]
    if len(kept) != len(rows):
        _write(kept, env)
    return len(kept) != len(rows)


def record(env: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """Read the rows of the record: path and allowed name."""
    try:
        return msgspec.json.decode(_file(env).read_bytes(), type=list[tuple[str, str]])
    except (OSError, msgspec.DecodeError):
        return []


def refusal(owner: Path, name: str, effect: str) -> str:
    """Compose the message about a name that has no effect, with the command that allows it."""
    return f"{owner} names {name!r}, which would {effect}; if you trust this folder, run: dowse trust {owner.parent}"


def _file(env: Mapping[str, str]) -> Path:
    from dowse.config import user_file

    return user_file({key: value for key, value in env.items() if key != "DOWSE_CONFIG"}).with_name(_FILE)


def _write(rows: list[tuple[str, str]], env: Mapping[str, str]) -> None:
    file = _file(env)
    scratch = file.with_name(f".{_FILE}.{os.getpid()}")
    with suppress(OSError):  # a read-only home: the question comes again, and DOWSE_TRUST answers it
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
            handle.write(msgspec.json.format(msgspec.json.encode(rows)))
        scratch.replace(file)
