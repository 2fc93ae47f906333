"""From what a person types, or a document's record, back to files: paths go in, documents and chunks come out."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from dowse.errors import BadRequestError, NotFoundError, UnavailableError
from dowse.filters import Glob, by_source, holds
from dowse.identity import bytes_hash
from dowse.ingest.sources.requests import MARK, revision_of
from dowse.ports import Store, StoreReader
from dowse.reports import SourceStatus
from dowse.types import Chunk, DocumentInfo, Source

_ID = re.compile(r"[0-9a-f]{16}")
_LINES = re.compile(r"(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")
_WILD = re.compile(r"[*?\[{]")


def documents_matching(store: Store, target: str) -> list[DocumentInfo]:
    """By document id, file, folder, `source/path`, or a glob over those. A file may be named like a glob, `[id].ts`."""
    if _ID.fullmatch(target) and (known := store.reader().document(target)):
        return [known]
    found = _spelled(store, target)
    if found or not _WILD.search(target):
        return found
    clause = Glob("uri", (target,))
    return [info for info in store.documents() if holds(clause, _uri(info)) or holds(clause, info.path)]


def _spelled(store: Store, target: str) -> list[DocumentInfo]:
    """At the very place, or below it."""
    wanted = set(_addresses(store.sources(), target))
    return [info for info in store.documents() if any(_is_below(_uri(info), each) for each in wanted)]


def chunks_at(store: Store, target: str) -> tuple[Chunk, ...]:
    """The chunks behind an id, a FILE, FILE:10 or FILE:10-40, in order."""
    reader = store.reader()
    if _ID.fullmatch(target) and (found := reader.get([target])):
        return tuple(found.values())
    whole = _spelled(store, target) or ([] if _WILD.search(target) else documents_matching(store, target))
    lines = None if whole else _LINES.fullmatch(target)
    infos = whole or (documents_matching(store, lines["file"]) if lines else [])
    if not infos:
        raise NotFoundError(f"nothing indexed at {target}; `dowse status` lists the sources")
    chunks = [chunk for info in infos for chunk in reader.document_chunks(info.id) if chunk.level == "chunk"]
    if lines:
        first, last = int(lines["first"]), int(lines["last"] or lines["first"])
        chunks = [each for each in chunks if (each.start_line or 0) <= last and first <= (each.end_line or 0)]
        if not chunks:
            raise NotFoundError(
                f"no chunk of {lines['file']} holds line {first}; `dowse show {lines['file']}` shows all"
            )
    return tuple(chunks)


def source_status(store: Store, reader: StoreReader, source: Source) -> SourceStatus:
    infos = list(store.documents(source.name))
    revision = revision_of(source)
    states = _states_at(revision, infos) if revision else [_state(source, info) for info in infos]
    return SourceStatus(
        name=source.name,
        root=source.root,
        documents=len(infos),
        chunks=sum(info.chunk_count for info in infos),
        stale=states.count("stale"),
        missing=states.count("missing"),
        last_indexed=max((info.indexed_at for info in infos), default=None),
        embedded=reader.embedded((by_source(source.name),)),
    )


def staleness(store: Store, reader: StoreReader, document_ids: Collection[str]) -> dict[str, bool]:
    """Which documents' files changed or went since they were indexed. A commit is not asked: it stays as it is."""
    sources = {source.name: source for source in store.sources() if revision_of(source) is None}
    infos = reader.documents_of(document_ids)
    return {info.id: _state(sources[info.source], info) != "fresh" for info in infos if info.source in sources}


def _states_at(revision: tuple[str, str], infos: Sequence[DocumentInfo]) -> list[str]:
    """All stale when the revision, a branch perhaps, means another commit by now; all missing when it is gone."""
    from dowse.ingest.sources import git

    try:
        stamp_ns = git.resolve(*revision).stamp_ns
    except (BadRequestError, UnavailableError):
        return ["missing"] * len(infos)
    return ["fresh" if info.modified_ns == stamp_ns else "stale" for info in infos]


def _state(source: Source, info: DocumentInfo) -> str:
    name, inside, _ = info.path.partition(MARK)
    path = Path(source.root) / name
    try:
        found = os.stat(path)
        if inside:
            return "fresh" if found.st_mtime_ns == info.modified_ns else "stale"
        if found.st_size == info.size_bytes and found.st_mtime_ns == info.modified_ns:
            return "fresh"
        if found.st_size != info.size_bytes:
            return "stale"
        return "fresh" if bytes_hash(path.read_bytes()) == info.content_hash else "stale"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "stale"  # there, but no longer readable: what is indexed cannot be confirmed


def _addresses(sources: Iterable[Source], target: str) -> Iterator[str]:
    """The uris that a typed path may mean: as a file of this machine, as a uri, as a path inside any source."""
    absolute = os.path.abspath(os.path.expanduser(target))
    for source in sources:
        if absolute == source.root:
            yield source.name
        elif absolute.startswith(source.root.rstrip("/") + "/"):
            yield f"{source.name}/{absolute[len(source.root.rstrip('/')) + 1 :]}"
        if not os.path.isabs(target):
            yield f"{source.name}/{target.removeprefix('./').rstrip('/')}"
    yield target.rstrip("/")


def _uri(info: DocumentInfo) -> str:
    return f"{info.source}/{info.path}"


def _is_below(uri: str, folder: str) -> bool:
    return uri == folder or uri.startswith(folder + "/")
