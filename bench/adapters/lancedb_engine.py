"""LanceDB: full-text leg, IVF_HNSW_SQ vector index and RRF, as in its documentation of hybrid search."""

from __future__ import annotations

import os
import time
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from json_server import each_timed, read, rows, serve, size_mb, versions
from lancedb.rerankers import RRFReranker

BATCH = 10_000


class Lance:
    """Table of the corpus. Words are the prose terms of Dowse: every engine indexes the same terms."""

    def open(self, folder: str) -> None:
        self._folder = folder
        self._table = lancedb.connect(folder).open_table("chunks")

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        started = time.process_time()
        matrix = np.load(vectors, mmap_mode="r")
        database = lancedb.connect(folder)
        self._folder = folder
        self._table = database.create_table("chunks", self._batches(corpus, matrix), mode="overwrite")
        tables_s = time.process_time() - started
        self._table.create_fts_index("prose", base_tokenizer="whitespace", stem=False, remove_stop_words=False,
                                     ascii_folding=False, lower_case=False, with_position=False)  # fmt: skip
        words_s = time.process_time() - started
        self._table.create_scalar_index("tenth", index_type="BITMAP")
        self._table.create_scalar_index("part", index_type="BITMAP")
        self._table.create_scalar_index("id", index_type="BTREE")
        self._table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ",
                                 num_partitions=1)  # fmt: skip
        all_s = time.process_time() - started
        return {"words_cpu_s": words_s - tables_s, "all_cpu_s": all_s, "disk_mb": size_mb(folder)}

    def hybrid(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        reranker = RRFReranker()

        def ask(item: tuple[Any, Any]) -> list[str]:
            question, vector = item
            search = self._table.search(query_type="hybrid").vector(vector).text(" ".join(question["prose"]) or "~")
            search = search.ef(128).rerank(reranker).limit(k).select(["id", "text"])
            if where:
                search = search.where(where, prefilter=True)
            return list(search.to_arrow()["id"].to_pylist())

        return each_timed(ask, self._asked(queries, first, count))

    def words(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        def ask(item: tuple[Any, Any]) -> list[str]:
            search = self._table.search(" ".join(item[0]["prose"]) or "~", query_type="fts").limit(k).select(["id"])
            search = search.where(where, prefilter=True) if where else search
            return list(search.to_arrow()["id"].to_pylist())

        return each_timed(ask, self._asked(queries, first, count))

    def dense(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        def ask(item: tuple[Any, Any]) -> list[str]:
            search = self._table.search(item[1]).distance_type("cosine").ef(128).limit(k).select(["id"])
            search = search.where(where, prefilter=True) if where else search
            return list(search.to_arrow()["id"].to_pylist())

        return each_timed(ask, self._asked(queries, first, count))

    def update(self, fresh: list[dict[str, str]], seed: int) -> dict[str, Any]:
        """Replace or add 20 chunks, then search for a word that only they contain.

        LanceDB does not sync its files; the time to sync them is reported separately.
        """
        before = self._files()
        vectors = np.random.default_rng(seed).standard_normal((len(fresh), 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        started = time.process_time()
        data = [row | {"vector": vector} for row, vector in zip(fresh, vectors, strict=True)]
        self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
            pa.Table.from_pylist(data, schema=self._table.schema)
        )
        found = self._table.search(fresh[0]["prose"].split()[-1], query_type="fts").limit(30).to_arrow().num_rows
        done = time.process_time()
        written = [name for name, changed_ns in self._files().items() if before.get(name) != changed_ns]
        syncing = time.process_time()
        for name in [*written, *{os.path.dirname(each) for each in written}]:
            handle = os.open(name, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        ended = time.process_time()
        return {"cpu_ms": 1000 * (done - started), "sync_cpu_ms": 1000 * (ended - syncing), "found": found}

    def _files(self) -> dict[str, int]:
        """Return the times of the last changes."""
        paths = (os.path.join(folder, name) for folder, _, names in os.walk(self._folder) for name in names)
        return {path: os.stat(path).st_mtime_ns for path in paths}

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("lancedb", "pyarrow", "numpy")}

    @staticmethod
    def _asked(queries: str, first: int, count: int) -> list[tuple[Any, Any]]:
        return list(zip(read(queries), np.load(queries.replace(".json", ".npy")), strict=True))[first : first + count]

    @staticmethod
    def _batches(corpus: str, matrix: Any) -> pa.RecordBatchReader:
        names = ("id", "text", "prose", "tenth", "part")
        schema = pa.schema([(name, pa.string()) for name in names])
        schema = schema.append(pa.field("vector", pa.list_(pa.float32(), matrix.shape[1])))

        def batch(some: list[dict[str, str]], first: int) -> pa.RecordBatch:
            columns = [pa.array([row[name] for row in some]) for name in names]
            flat = pa.array(np.ascontiguousarray(matrix[first : first + len(some)]).ravel())
            return pa.record_batch([*columns, pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])], schema=schema)

        def batches() -> Any:
            some: list[dict[str, str]] = []
            first = 0
            for row in rows(corpus):
                some.append(row)
                if len(some) == BATCH:
                    yield batch(some, first)
                    first += len(some)
                    some = []
            if some:
                yield batch(some, first)

        return pa.RecordBatchReader.from_batches(schema, batches())


if __name__ == "__main__":
    serve(Lance())
