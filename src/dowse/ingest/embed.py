"""Embedding of the backlog: texts without a vector, batch by batch, until the writer has none left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dowse.errors import CorruptIndexError
from dowse.ingest.reading.limits import in_order
from dowse.ports import Embedder, Matrix, Pending, Progress, Reporter, StoreWriter

BATCH = 32  # texts a call; chosen: small enough to stop between, large enough to keep a session busy
THREADS = 2  # one session serves several; measured: two keep two cores busy
_WINDOW_BATCHES = 16  # read from the writer at a time; chosen


def embed_backlog(
    writer: StoreWriter,
    embedder: Embedder,
    report: Reporter | None = None,
    *,
    batch: int = BATCH,
    threads: int = THREADS,
    stop: Callable[[], bool] | None = None,
) -> int:
    """Embed all texts that have no vector; return their number.

    The caller has called `writer.use_model`. Each batch is stored when it is done, so that an interruption loses at
    most the batches in progress. `stop` is called between batches.
    """

    def embed(group: Sequence[Pending]) -> Matrix:
        return embedder.embed([each.text for each in group], role="chunk")

    total = writer.pending_count()
    done = 0
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="dowse-embed")
    try:
        last: Sequence[Pending] = ()
        while texts := writer.pending(batch * _WINDOW_BATCHES):
            if texts == last:
                raise CorruptIndexError("stored vectors cannot be read back; repair the index with `dowse rebuild`")
            last = texts
            groups = (texts[start : start + batch] for start in range(0, len(texts), batch))
            for group, vectors in in_order(pool, embed, groups, 2 * threads):
                writer.put_vectors([each.content_hash for each in group], vectors)
                done += len(group)
                if report:
                    report(Progress("embed", done, max(total, done)))
                if stop and stop():
                    return done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return done
