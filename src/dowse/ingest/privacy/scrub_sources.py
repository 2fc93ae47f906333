"""The sources of a run go in; which of them are scrubbed, and by whom, comes out, and is remembered with the index.

A source that was scrubbed once stays so until it is told otherwise: a later run must not bring the names back.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from dowse.ingest.privacy.pseudonyms import Scrubber
from dowse.ingest.privacy.scrub_names import People, people_in
from dowse.ingest.sources.content import Contents, read_contents
from dowse.ingest.sources.supply import supplied
from dowse.ingest.sources.walk import Candidate
from dowse.ports import Store

_KEY = "scrub_key"
_SOURCE = "scrub/"
_STARTED = "started"  # some documents are not scrubbed yet
_KEY_BYTES = 16


@dataclass(frozen=True)
class ScrubOptions:
    """What was asked for: True and False decide for the sources of this run, None leaves them as they are."""

    wanted: bool | None = None
    names: Path | None = None  # a file of names


@dataclass
class Scrubbing:
    """How the sources of one run are scrubbed."""

    scrubbers: dict[str, Scrubber] = field(default_factory=dict)
    renewed: set[str] = field(default_factory=set)  # sources of which every file is read again
    states: dict[str, str] = field(default_factory=dict)  # what to remember when all is done

    def remember(self, store: Store) -> None:
        for source, state in self.states.items():
            store.set_fact(_SOURCE + source, state)


def scrubbing(store: Store, files: Sequence[Candidate], options: ScrubOptions, *, partly: bool) -> Scrubbing:
    """`partly`: only some files of the sources are looked at, so that not all names can be known anew."""
    found = Scrubbing()
    for source in sorted({file.source.name for file in files}):
        before = store.fact(_SOURCE + source) or ""
        wanted = bool(before) if options.wanted is None else options.wanted
        if not wanted:
            if before:
                found.renewed.add(source)
                found.states[source] = ""
            continue
        own = [file for file in files if file.source.name == source]
        people = _people(own, options.names)
        state = blake2b(repr(people).encode(), digest_size=8).hexdigest()
        found.scrubbers[source] = Scrubber(_key(store), people)
        if before != state and not (partly and before):
            found.renewed.add(source)
            found.states[source] = state
            store.set_fact(_SOURCE + source, _STARTED)  # so that a run that is cut short is taken up again
    return found


def _key(store: Store) -> bytes:
    """The same for the whole index, made when it is first needed."""
    known = store.fact(_KEY)
    if known is None:
        known = secrets.token_hex(_KEY_BYTES)
        store.set_fact(_KEY, known)
    return bytes.fromhex(known)


def _people(files: Sequence[Candidate], names: Path | None) -> People:
    users = [file for file in files if file.path.rpartition("/")[2].rpartition("!")[2] == "users.json"]
    roots = sorted({file.repo.root for file in files if file.repo})
    everyone = {person for root in roots for person in people_in((), root, None)}
    return tuple(sorted({*everyone, *people_in(_contents(users), None, names)}))


def _contents(files: Sequence[Candidate]) -> Iterable[bytes]:
    for file, data in supplied(files, max((file.size_bytes for file in files), default=0) + 1):
        if isinstance(data, bytes):
            yield data
        elif data is None and isinstance(read := read_contents(file.full_path, file.size_bytes, sniff=False), Contents):
            yield read.data
