"""Benchmark of the query pipeline without models: CPU time by stage over the benchmark corpus.

Measured: CPU of one thread in milliseconds, median over the questions of `bench.queries`, models left out (question
vectors are looked up), with the compiled kernel. Corpus: `bench.corpus`, seed there. Everything is on: heuristic
reranking, freshness, boost, MMR, exact names, parents, explanation; top_k 20. The legs and the fetching of text are the
store's, and are shown but not counted. Run `python -m bench.query --chunks 100000`, after `python -m bench.engine
--chunks 100000` has built the index.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from bench import cache, queries
from bench.figures import Figure
from dowse.models.registry import DEFAULT
from dowse.ports import Candidate, Matrix, StoreReader
from dowse.query.pipeline import iter_waves, prepared
from dowse.query.result import result_of
from dowse.query.stages.mmr import apply_mmr
from dowse.query.stages.rerank_heuristic import HeuristicReranker
from dowse.query.stages.state import Traced
from dowse.store.embedded import EmbeddedStore
from dowse.store.kernels.numpy_kernel import open_kernel
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, Role

STORE_STAGES = ("dense", "bm25_code", "bm25_nlp", "hydrate")
LATER = ("exact", "confidence")  # outside the latency bar: a search of its own, and a judgement of the answer
TOP_K = 20
ROUNDS = 5  # the fastest one of each query counts: the machine is shared


@dataclass(frozen=True)
class Known:
    """`dowse.ports.Embedder` that looks query vectors up."""

    vectors: dict[str, Matrix]
    model: str = DEFAULT
    dimension: int = 384

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        return np.stack([self.vectors[text] for text in texts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    wanted = parser.parse_args()
    place = cache.folder("indexes") / f"dowse-{wanted.chunks}"
    if not place.exists():
        raise SystemExit(f"no index {place}; run `python -m bench.engine --chunks {wanted.chunks}` first")
    asked = queries.questions()
    texts = [row["text"] for row in json.loads(asked.read_bytes())]
    embedder = Known(dict(zip(texts, np.load(asked.with_suffix(".npy")), strict=True)))
    store = EmbeddedStore(Path(place), read_only=True, kernel=open_kernel("native"))
    try:
        figures = [*_path(store.reader(), texts, embedder), *_parts(store.reader(), texts)]
    finally:
        store.close()
    for figure in figures:
        print(figure.line)


def _path(reader: StoreReader, texts: Sequence[str], embedder: Known) -> list[Figure]:
    tokenizer = Tokenizer()
    _spent(reader, texts[0], embedder, tokenizer)  # loading at the first query is not counted
    rounds = [[_spent(reader, text, embedder, tokenizer) for text in texts] for _ in range(ROUNDS)]
    quietest = [min(rows, key=lambda row: sum(row.values())) for rows in zip(*rounds, strict=True)]
    stages = list(dict.fromkeys(stage for row in quietest for stage in row))
    best = {stage: median(row.get(stage, 0.0) for row in quietest) for stage in stages}
    own = median(sum(ms for stage, ms in row.items() if stage not in (*STORE_STAGES, *LATER)) for row in quietest)
    whole = median(sum(ms for stage, ms in row.items() if stage not in STORE_STAGES) for row in quietest)
    shown = [Figure(f"stage {stage}", ms, "ms") for stage, ms in best.items()]
    return [
        *shown,
        Figure("plan, fuse, smooth, rerank, adjust, parents, MMR, explain", own, "ms", 3.0, 2.0, at_most=True),
        Figure("… with the look-up of names and confidence", whole, "ms"),
    ]


def _spent(reader: StoreReader, text: str, embedder: Known, tokenizer: Tokenizer) -> dict[str, float]:
    """Measure CPU milliseconds by stage. Legs run one after the other, so that each has its own time."""
    request = QueryRequest(text, top_k=TOP_K, rerank="heuristic", mmr=True, explain=True, cache=False)
    spent: dict[str, float] = defaultdict(float)
    started = time.process_time()
    ready = prepared(request, reader, embedder, tokenizer)
    spent["plan"] = 1000 * (time.process_time() - started)
    waves = tuple((step,) for wave in ready.waves for step in wave)
    started = time.process_time()
    traced = Traced(ready.state)
    for wave, traced in zip(waves, iter_waves(waves, ready.state, None, None), strict=True):  # noqa: B007  the last is used
        now = time.process_time()
        spent[wave[0].stage.name] += 1000 * (now - started)
        started = time.process_time()
    result_of(traced, ready.asked)
    spent["result and explanation"] = 1000 * (time.process_time() - started)
    return spent


def _parts(reader: StoreReader, texts: Sequence[str]) -> list[Figure]:
    """Measure the two stages with a bar of their own."""
    found = reader.search_words("bm25_nlp", Tokenizer().query(" ".join(texts[:20]))["bm25_nlp"], 500, ())
    chunks = list(reader.get([f"{each:016x}" for each in found.ids.tolist()]).values())
    candidates = [Candidate(chunk, 0.5) for chunk in chunks[:50]]
    reranker = HeuristicReranker()
    vectors, _ = reader.vectors(found.ids)
    values = np.linspace(1, 0, len(vectors)).tolist()
    heuristic = _best_ms(lambda: reranker.score(texts[0], candidates))
    diversified = _best_ms(lambda: apply_mmr(values, vectors, 0.3, TOP_K))
    return [
        Figure(f"heuristic reranking of {len(candidates)}", heuristic, "ms", 5.0, 2.0, at_most=True),
        Figure(f"MMR of {len(vectors)} candidates, {TOP_K} picks", diversified, "ms", 10.0, 5.0, at_most=True),
    ]


def _best_ms(work: Callable[[], object], times: int = 20) -> float:
    spent = []
    for _ in range(times):
        started = time.process_time()
        work()
        spent.append(1000 * (time.process_time() - started))
    return median(spent)


if __name__ == "__main__":
    main()
