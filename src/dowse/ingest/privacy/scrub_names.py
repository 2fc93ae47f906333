"""A source's files go in; the people who wrote them come out, by all spellings of their names that can be found.

They are in a Slack export's list of users, in the history of a repository, and in a file that the settings name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.sources import git

People = tuple[tuple[str, ...], ...]


def people_in(users: Iterable[bytes], root: str | None, listed: Path | None) -> People:
    """Sorted, each once. `users` are the contents of files called users.json, `root` a folder that may be git's."""
    found = {*_listed(listed), *(person for data in users for person in slack_people(data))}
    if root is not None:
        with suppress(UnavailableError):  # no repository, or no git: then no document names an author of it either
            found |= {(name,) for name in git.authors(root)}
    return tuple(sorted(found))


def slack_people(data: bytes) -> Iterator[tuple[str, ...]]:
    """The people of a Slack export. Bots are no people."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        return
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or row.get("is_bot") or not isinstance(row.get("profile", {}), dict):
            continue
        profile = row.get("profile", {})
        names = (profile.get("real_name"), row.get("real_name"), profile.get("display_name"), row.get("name"))
        spellings = tuple(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))
        if spellings:
            yield spellings


def _listed(file: Path | None) -> Iterator[tuple[str, ...]]:
    """A person a line, other spellings behind commas; `#` starts a comment."""
    if file is None:
        return
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise BadRequestError(f"cannot read the names to scrub from {file}: {err}; correct scrub_names") from err
    for line in lines:
        names = tuple(name.strip() for name in line.partition("#")[0].split(",") if name.strip())
        if names:
            yield names
