"""What is asked to be indexed goes in and is remembered; asked for nothing, all of that comes out again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dowse.errors import BadRequestError
from dowse.ingest.sources.archives import is_archive
from dowse.ingest.sources.requests import REVISION_ROOT, Asked, is_inside
from dowse.ports import Store

_FACT = "asked"


def asked_for(store: Store, paths: Sequence[str | Path], rev: str | None, *, archives: bool) -> list[Asked]:
    """The paths as asked; without any, what was asked before and has not been removed since."""
    if paths:
        return [Asked(Path(path), rev, archives) for path in paths]
    if rev is not None:
        raise BadRequestError(f"of which repository? Type its folder, too: dowse index --rev {rev} .")
    found = remembered(store)
    if not found:
        raise BadRequestError("nothing to index: give a file or folder, for example `dowse index .`")
    return found


def remembered(store: Store) -> list[Asked]:
    """What was asked for, of sources that still are. An index of an older version remembers its sources alone."""
    asked = _kept(store)
    roots = [source.root for source in store.sources() if not source.root.startswith(REVISION_ROOT)]
    return asked + [Asked(Path(root)) for root in roots if not any(_meets(each, root) for each in asked)]


def _kept(store: Store) -> list[Asked]:
    asked = [Asked(Path(path), rev, archives) for path, rev, archives in json.loads(store.fact(_FACT) or "[]")]
    roots = [source.root for source in store.sources()]
    return [each for each in asked if any(_meets(each, root) for root in roots)]


def remember(store: Store, asked: Sequence[Asked]) -> None:
    """Written only when it is news."""
    now = {(each.path, each.rev): each for each in _kept(store)}
    for each in asked:
        path = Path(os.path.abspath(os.path.expanduser(each.path)))
        now[path, each.rev] = Asked(path, each.rev, each.archives)
    rows = [[str(each.path), each.rev, each.archives] for each in now.values() if not _within(each, now.values())]
    if json.dumps(rows) != store.fact(_FACT):
        store.set_fact(_FACT, json.dumps(rows))


def _meets(asked: Asked, root: str) -> bool:
    """Whether it asks for a source, for a part of it or for more than it."""
    if asked.rev is not None:
        return root.startswith(f"{REVISION_ROOT}{asked.rev}:")
    path = os.path.realpath(asked.path)
    return is_inside(path, root) or is_inside(root, path)


def _within(asked: Asked, others: Iterable[Asked]) -> bool:
    """Whether a folder that is asked for as well brings it in anyway: not an archive, which only its name opens."""
    if asked.rev is not None or is_archive(str(asked.path)):
        return False
    return any(
        other.rev is None
        and other.path in asked.path.parents
        and (other.archives or not asked.archives)
        and other.path.is_dir()
        for other in others
    )
