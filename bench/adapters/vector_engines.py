"""Vector engines over the same vectors.

faiss flat, faiss HNSW and Chroma, chosen by the first argument.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from json_server import each_timed, rows, serve, size_mb, versions

FIELDS = ("tenth", "part")
DEGREE, EF_BUILD, EF_SEARCH = 32, 100, 128  # HNSW: M, efConstruction and efSearch; one setting for all engines


class Faiss:
    """faiss; a filter is an id selector, made for every query."""

    hnsw = False

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        import faiss

        self._faiss = faiss
        faiss.omp_set_num_threads(1)
        matrix = np.load(vectors)
        self._columns = dict(
            zip(FIELDS, zip(*((row["tenth"], row["part"]) for row in rows(corpus)), strict=True), strict=True)
        )
        self._columns = {name: np.array(values) for name, values in self._columns.items()}
        started = time.process_time()
        if self.hnsw:
            self._index = faiss.IndexHNSWFlat(matrix.shape[1], DEGREE, faiss.METRIC_INNER_PRODUCT)
            self._index.hnsw.efConstruction = EF_BUILD
        else:
            self._index = faiss.IndexFlatIP(matrix.shape[1])
        self._index.add(matrix)
        spent = time.process_time() - started
        os.makedirs(folder, exist_ok=True)
        faiss.write_index(self._index, os.path.join(folder, "index.faiss"))
        return {"dense_cpu_s": spent, "disk_mb": size_mb(folder)}

    def dense(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        faiss = self._faiss

        def ask(vector: Any) -> list[int]:
            options: dict[str, Any] = {"efSearch": EF_SEARCH} if self.hnsw else {}
            if where:
                name, value = where.split(" = ")
                options["sel"] = faiss.IDSelectorBitmap(
                    np.packbits(self._columns[name] == value.strip("'"), bitorder="little")
                )
            make = faiss.SearchParametersHNSW if self.hnsw else faiss.SearchParameters
            _, found = self._index.search(vector[None, :], k, params=make(**options) if options else None)
            return [int(each) for each in found[0] if each >= 0]

        return each_timed(ask, np.load(queries.replace(".json", ".npy"))[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("faiss-cpu", "numpy")}


class FaissHnsw(Faiss):
    hnsw = True


class Chroma:
    """Chroma with its defaults and the collection on disk; a filter is a `where` on metadata."""

    def build(self, corpus: str, vectors: str, folder: str) -> dict[str, Any]:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(path=folder, settings=Settings(anonymized_telemetry=False))
        self._collection = client.create_collection("chunks", metadata={"hnsw:space": "cosine"})
        matrix = np.load(vectors)
        fields = [{name: row[name] for name in FIELDS} for row in rows(corpus)]
        started = time.process_time()
        for first in range(0, len(matrix), 5000):
            some = slice(first, first + 5000)
            numbers = [str(each) for each in range(first, first + len(fields[some]))]
            self._collection.add(ids=numbers, embeddings=matrix[some], metadatas=fields[some])
        return {"dense_cpu_s": time.process_time() - started, "disk_mb": size_mb(folder)}

    def dense(self, queries: str, where: str | None, k: int, first: int, count: int) -> dict[str, Any]:
        only = None
        if where:
            name, value = where.split(" = ")
            only = {name: value.strip("'")}

        def ask(vector: Any) -> list[int]:
            found = self._collection.query(query_embeddings=[vector], n_results=k, where=only, include=[])
            return [int(each) for each in found["ids"][0]]

        return each_timed(ask, np.load(queries.replace(".json", ".npy"))[first : first + count])

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("chromadb", "numpy")}


ENGINES = {"faiss-flat": Faiss, "faiss-hnsw": FaissHnsw, "chroma": Chroma}

if __name__ == "__main__":
    serve(ENGINES[sys.argv[1]]())
