"""Status of an index: counts, size, and sources with their stale and missing documents.

Separate from `locate`, which works on any store: this needs the folder and the schema of the embedded one.
"""

from __future__ import annotations

from msgspec.structs import asdict

from dowse.lookup.locate import source_status
from dowse.reports import Status
from dowse.store.embedded import EmbeddedStore
from dowse.store.sql.schema import SCHEMA_VERSION


def status(store: EmbeddedStore) -> Status:
    reader = store.reader()
    stats = reader.stats
    return Status(
        path=str(store.folder),
        schema_version=SCHEMA_VERSION,
        **asdict(stats),
        pending=stats.chunks - stats.vectors,
        dead_chunks=len(reader.dead),
        size_bytes=sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file()),
        sources=tuple(source_status(store, reader, source) for source in store.sources()),
    )
