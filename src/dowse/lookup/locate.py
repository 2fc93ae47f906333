"""Documents and chunks by a typed path, and the state of their files on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from dowse.errors import BadRequestError, NotFoundError, UnavailableError
from dowse.filters import Glob, by_source, holds
from dowse.identity import document_id
from dowse.ingest.sources.requests import ADDED_ROOT, MARK, REVISION_ROOT, is_inside, path_in, revision_of
from dowse.ports import Store, StoreReader
from dowse.private_hash import is_same_content, is_same_size
from dowse.reports import SourceStatus
from dowse.types import Chunk, DocumentInfo, Source

_ID = re.compile(r"[0-9a-f]{16}")
_LINES = re.compile(r"(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")
_WILD = re.compile(r"[*?\[{]")


def documents_matching(store: Store, target: str) -> list[DocumentInfo]:
    """Find documents by id, file (even `[id].ts`), folder, `source/path`, or a glob over those."""
    if _ID.fullmatch(target) and (known := store.reader().document(target)):
        return [known]
    reader = store.reader()
    added = [document_id(source.name, target) for source in store.sources() if source.root.startswith(ADDED_ROOT)]
    if found := list(reader.documents_of(added)):
        return found  # its id is exactly this; a path would include all below it
    found = _spelled(store, target)
    if found or not _WILD.search(target):
        return found
    clause = Glob("uri", (target,))
    return [info for info in store.documents() if holds(clause, _uri(info)) or holds(clause, info.path)]


def _spelled(store: Store, target: str) -> list[DocumentInfo]:
    """Find documents at exactly this path, or below it."""
    wanted = set(_addresses(store.sources(), target))
    return [info for info in store.documents() if any(is_inside(_uri(info), each) for each in wanted)]


def chunks_at(store: Store, target: str) -> tuple[Chunk, ...]:
    """Find the chunks of an id, a FILE, FILE:10 or FILE:10-40, in order."""
    reader = store.reader()
    if _ID.fullmatch(target) and (found := reader.get([target])):
        return tuple(found.values())
    whole = _spelled(store, target) or ([] if _WILD.search(target) else documents_matching(store, target))
    lines = None if whole else _LINES.fullmatch(target)
    infos = whole or (documents_matching(store, lines["file"]) if lines else [])
    if not infos:
        raise NotFoundError(f"{target} is not in the index; run `dowse status` to see what is")
    chunks = [chunk for info in infos for chunk in reader.document_chunks(info.id) if chunk.level == "chunk"]
    if lines:
        first, last = int(lines["first"]), int(lines["last"] or lines["first"])
        if last < first:
            raise BadRequestError(f"invalid range {first}-{last}: it ends before it begins; write {last}-{first}")
        chunks = [each for each in chunks if (each.start_line or 0) <= last and first <= (each.end_line or 0)]
        if not chunks:
            file = lines["file"]
            raise NotFoundError(f"no chunk of {file} has line {first}; run `dowse show {file}` to see all chunks")
    return tuple(chunks)


def source_status(store: Store, reader: StoreReader, source: Source) -> SourceStatus:
    infos = list(store.documents(source.name))
    revision = revision_of(source)
    added = source.root.startswith(ADDED_ROOT)
    states = [] if added else _states_at(revision, infos) if revision else [_state(source, info) for info in infos]
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
    """Test whether files changed since they were indexed; files of a commit and added documents cannot."""
    unchanging = (REVISION_ROOT, ADDED_ROOT)
    sources = {source.name: source for source in store.sources() if not source.root.startswith(unchanging)}
    infos = reader.documents_of(document_ids)
    return {info.id: _state(sources[info.source], info) != "fresh" for info in infos if info.source in sources}


def _states_at(revision: tuple[str, str], infos: Sequence[DocumentInfo]) -> list[str]:
    """Return "stale" for all if the revision, perhaps a branch, has moved; "missing" if it is gone."""
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
        if is_same_size(found.st_size, info.size_bytes) and found.st_mtime_ns == info.modified_ns:
            return "fresh"
        if not is_same_size(found.st_size, info.size_bytes):
            return "stale"
        return "fresh" if is_same_content(path.read_bytes(), info.content_hash) else "stale"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "stale"  # exists, but cannot be read and compared


def _addresses(sources: Iterable[Source], target: str) -> Iterator[str]:
    """Yield the uris that a typed path may mean: a file on disk, a uri, a path inside any source."""
    absolute = os.path.abspath(os.path.expanduser(target))
    for source in sources:
        if is_inside(absolute, source.root):
            yield f"{source.name}/{path_in(source.root, absolute)}".rstrip("/")
        if not os.path.isabs(target):
            yield f"{source.name}/{target.removeprefix('./').rstrip('/')}"
    yield target.rstrip("/")


def _uri(info: DocumentInfo) -> str:
    return f"{info.source}/{info.path}"
