"""Dowse under test: the same corpus, vectors and queries as its peers."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from json_server import each_timed, read, rows, serve, size_mb, versions
from msgspec.structs import replace

import dowse
from bench import corpus
from dowse.filters import META, Filter, In
from dowse.identity import chunk_id, document_id, embedded_text, text_hash
from dowse.ingest.pipeline import IndexOptions
from dowse.models.choose import open_embedder
from dowse.models.registry import DEFAULT
from dowse.ports import Matrix, Progress
from dowse.query.assemble import Parts
from dowse.query.pipeline import answer, prepared
from dowse.query.stream import stream
from dowse.store.embedded import EmbeddedStore
from dowse.store.kernels.numpy_kernel import open_kernel
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Document, Leg, QueryRequest, Role

IMPORT_CPU_S = time.process_time()  # this process has done nothing else yet
GROUP = 64  # documents a transaction, as `dowse index` does


class Known:
    """Embedder that looks vectors up, so that embedding a query costs nothing."""

    model = DEFAULT
    dimension = 384

    def __init__(self, vectors: dict[str, Any]) -> None:
        self._vectors = vectors

    @classmethod
    def of(cls, queries: str) -> Known:
        vectors = np.load(queries.replace(".json", ".npy"))
        return cls({row["text"]: vector for row, vector in zip(read(queries), vectors, strict=True)})

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        return np.stack([self._vectors[text] for text in texts])


class Dowse:
    """Index of the corpus in a long-running process."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer()

    def build(self, chunks: int, vectors: str, folder: str) -> dict[str, Any]:
        """Write words by group, published about every 2,000 chunks; then all vectors."""
        self._folder = Path(folder)
        shutil.rmtree(folder, ignore_errors=True)
        store = EmbeddedStore(self._folder)
        writer = store.writer()
        spent = waiting = 0.0
        for group in _groups(corpus.documents(chunks)):
            started = time.process_time()
            writer.put(group)
            waiting += sum(len(each.chunks) for each in group)
            if waiting >= 2000:
                writer.publish()
                waiting = 0
            spent += time.process_time() - started
        started = time.process_time()
        writer.publish()
        words_s = spent + time.process_time() - started
        started = time.process_time()
        writer.use_model(DEFAULT, 384)
        of_hash = {chunk.content_hash: row for row, chunk in enumerate(_chunks(chunks))}
        matrix = np.load(vectors, mmap_mode="r")
        looked_up_s = time.process_time() - started
        started = time.process_time()
        while waiting_for := writer.pending(4096):
            hashes = [each.content_hash for each in waiting_for]
            writer.put_vectors(hashes, np.asarray(matrix[[of_hash[each] for each in hashes]]))
        vectors_s = time.process_time() - started
        writer.close()
        store.close()
        return {
            "words_cpu_s": words_s,
            "vectors_cpu_s": vectors_s,
            "lookup_cpu_s": looked_up_s,
            "disk_mb": size_mb(folder),
        }

    def open(self, folder: str, *, read_only: bool = True, kernel: str = "native") -> dict[str, Any]:
        """Open the index as `dowse serve` does, with the compiled kernel."""
        self._folder = Path(folder)
        chosen = open_kernel(kernel)
        self._store = EmbeddedStore(self._folder, read_only=read_only, kernel=chosen)
        self._parts = Parts(fusion_kernel=chosen.fusion)
        return {"chunks": self._store.reader().stats.chunks}

    def hybrid(self, queries: str, where: list[str] | None, k: int, first: int, count: int) -> dict[str, Any]:
        """Run the part that peers have too: plan, three legs, complete scoring, z fusion, texts of the best.

        Adjustments, parents and confidence follow in `whole`.
        """
        embedder, chosen = Known.of(queries), _filter(where)
        reader = self._store.reader()

        def ask(question: Any) -> list[str]:
            request = QueryRequest(question["text"], top_k=k, where=chosen)
            ready = prepared(request, reader, embedder, self._tokenizer, parts=self._parts, only_shown=True, early=True)
            return [hit.id for hit in next(stream(ready)).result.chunks]

        return each_timed(ask, read(queries)[first : first + count])

    def whole(self, queries: str, where: list[str] | None, k: int, first: int, count: int) -> dict[str, Any]:
        """Run the whole default profile."""
        embedder, chosen = Known.of(queries), _filter(where)
        reader = self._store.reader()

        def ask(question: Any) -> list[str]:
            request = QueryRequest(question["text"], top_k=k, where=chosen)
            return [hit.id for hit in answer(request, reader, embedder, self._tokenizer, parts=self._parts).chunks]

        return each_timed(ask, read(queries)[first : first + count])

    def stages(self, queries: str, where: list[str] | None, k: int, first: int, count: int) -> dict[str, float]:
        """Return median wall milliseconds by stage of the pipeline."""
        embedder, chosen, found = Known.of(queries), _filter(where), {}
        for question in read(queries)[first : first + count]:
            request = QueryRequest(question["text"], top_k=k, where=chosen, cache=False)
            for stage, ms in answer(
                request, self._store.reader(), embedder, self._tokenizer, parts=self._parts
            ).query_metadata.stages:
                found.setdefault(stage, []).append(ms)
        return {stage: float(np.median(values)) for stage, values in found.items()}

    def words(
        self, queries: str, where: list[str] | None, k: int, first: int, count: int, leg: Leg = "bm25_nlp"
    ) -> dict[str, Any]:
        reader, chosen = self._store.reader(), _filter(where)
        field = {"bm25_nlp": "prose", "bm25_code": "code"}[leg]
        return each_timed(
            lambda question: len(reader.search_words(leg, question[field], k, chosen).ids),
            read(queries)[first : first + count],
        )

    def dense(self, queries: str, where: list[str] | None, k: int, first: int, count: int) -> dict[str, Any]:
        reader, chosen = self._store.reader(), _filter(where)

        def ask(vector: Any) -> list[str]:
            return [f"{each:016x}" for each in reader.search_vectors(vector, k, chosen).ids.tolist()]

        return each_timed(ask, np.load(queries.replace(".json", ".npy"))[first : first + count])

    def update(self, fresh: list[dict[str, str]], seed: int) -> dict[str, Any]:
        """Update 20 chunks in four files, with vectors at hand, until a search for their word finds them."""
        vectors = np.random.default_rng(seed).standard_normal((len(fresh), 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        documents = [_fresh_document(fresh[first : first + 5]) for first in range(0, len(fresh), 5)]
        started = time.process_time()
        writer = self._store.writer()
        opened = time.process_time()
        writer.put(documents)
        writer.publish()
        writer.use_model(DEFAULT, 384)
        hashes = [each.content_hash for each in writer.pending(100)]
        writer.put_vectors(hashes, vectors[: len(hashes)])
        word = self._tokenizer.query(fresh[0]["text"].split()[-1])["bm25_nlp"]
        found = len(self._store.reader().search_words("bm25_nlp", word, 30, ()).ids)
        done = time.process_time()
        writer.close()
        return {
            "cpu_ms": 1000 * (done - started),
            "open_cpu_ms": 1000 * (opened - started),
            "close_cpu_ms": 1000 * (time.process_time() - done),
            "found": found,
        }

    def recall(self, queries: str, corpus_file: str, vectors: str, where: list[str] | None, k: int) -> dict[str, float]:
        """Measure the share of the exact nearest k that the dense leg finds; equal cosines count."""
        matrix = np.load(vectors, mmap_mode="r")
        lines = list(rows(corpus_file))
        allowed = np.array([not where or line[where[0]] in where[1:] for line in lines])
        row_of = {line["id"]: row for row, line in enumerate(lines)}
        asked = np.load(queries.replace(".json", ".npy"))
        best = _best_cosines(matrix, asked, allowed, k)
        reader, hits, full = self._store.reader(), 0, 0
        for vector, exact in zip(asked, best, strict=True):
            ids = reader.search_vectors(vector, k, _filter(where)).ids.tolist()
            found = [row_of[f"{each:016x}"] for each in ids]
            full += len(found) == len(exact)
            hits += int((np.asarray(matrix[found]) @ vector >= exact[-1] - 1e-6).sum())
        return {"recall": hits / sum(map(len, best)), "full": full / len(best), "matches": int(allowed.sum())}

    def rank(self, folder: str, index: str) -> dict[str, Any]:
        """Rank the queries of a test collection with the default profile; `dowse eval` built the index."""
        self.open(index)
        queries = f"{folder}/queries.json"
        vectors = dict(zip(read(queries), np.load(f"{folder}/queries.npy"), strict=True))
        embedder, reader = Known(vectors), self._store.reader()

        def ask(text: str) -> list[str]:
            found = answer(
                QueryRequest(text, top_k=10, cache=False), reader, embedder, self._tokenizer, parts=self._parts
            ).chunks
            return [hit.source_uri.split("/", 1)[1] for hit in found]

        ask(read(queries)[0])
        return each_timed(ask, read(queries)) | {"index_cpu_s": self._words_again(), "import_cpu_s": IMPORT_CPU_S}

    def _words_again(self) -> float:
        """Measure CPU seconds of rebuilding words and vectors from the database, without embedding."""
        with tempfile.TemporaryDirectory(prefix="dowse-bench-") as place:
            shutil.copytree(self._folder, f"{place}/index")
            store = EmbeddedStore(Path(place) / "index")
            started = time.process_time()
            writer = store.writer()
            writer.compact()
            spent = time.process_time() - started
            writer.close()
            store.close()
        return spent

    def index_files(self, folder: str, index: str) -> dict[str, Any]:
        """Index files without embedding: reading, chunking, writing and publishing words; then linking."""
        shutil.rmtree(index, ignore_errors=True)
        engine = dowse.open(index, embedder=None)
        linking_since: list[float] = []

        def watch(progress: Progress) -> None:
            if progress.phase == "link" and not linking_since:
                linking_since.append(time.process_time())  # after the first batch of documents was linked

        started = time.process_time()
        report = engine.index([folder], report=watch, how=IndexOptions(workers=0))  # all CPU in this process
        ended = time.process_time()
        engine.close()
        words = (linking_since or [ended])[0] - started
        return {
            "chunks": report.chunks,
            "files": report.added,
            "cpu_s": words,
            "with_links_cpu_s": ended - started,
            "disk_mb": size_mb(index),
        }

    def embed(self, model: str, models_folder: str, texts: list[str]) -> dict[str, Any]:
        embedder = open_embedder(model, models_folder=Path(models_folder), threads=1)
        if embedder is None:
            raise SystemExit(f"the model {model} cannot be opened; run `dowse models pull {model}`")
        embedder.embed(texts[:2], role="chunk")
        started = time.process_time()
        embedder.embed(texts, role="chunk")
        return {"docs_per_s": len(texts) / (time.process_time() - started)}

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("numpy", "onnxruntime", "tokenizers", "msgspec")}


def _best_cosines(matrix: Any, asked: Any, allowed: Any, k: int) -> list[Any]:
    """Compute the k largest cosines of each query over the allowed rows, falling; exact, in blocks."""
    kept = np.full((len(asked), 0), 0, np.float32)
    for start in range(0, len(matrix), 50_000):
        block = np.asarray(matrix[start : start + 50_000])[allowed[start : start + 50_000]]
        kept = -np.sort(-np.concatenate([kept, asked @ block.T], axis=1), axis=1)[:, :k]
    return list(kept)


def _filter(where: list[str] | None) -> Filter:
    return (In(META + where[0], tuple(where[1:])),) if where else ()


def _groups(documents: Iterator[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    for document in documents:
        group.append(document)
        if len(group) == GROUP:
            yield group
            group = []
    if group:
        yield group


def _chunks(count: int) -> Iterator[Chunk]:
    for document in corpus.documents(count):
        yield from document.chunks


def _fresh_document(rows: list[dict[str, str]]) -> Document:
    path = f"fresh/{rows[0]['id']}.txt"
    name = document_id("fresh", path)
    uri = f"fresh/{path}"
    make: Callable[[str], Chunk] = lambda text: Chunk(  # noqa: E731
        chunk_id(uri, "chunk", text), name, text, "DOC_PAGE", uri, document_source="fresh", file_path=path
    )
    chunks = [make(row["text"]) for row in rows]
    chunks = [corpus.marked(replace(each, content_hash=text_hash(embedded_text(each)))) for each in chunks]
    return Document(name, "fresh", path, path, text_hash(path + str(len(rows[0]["text"]))), tuple(chunks))


if __name__ == "__main__":
    serve(Dowse())
