"""Test collections go in; nDCG@10 and cost of Dowse and of its peers, over the same texts and vectors, come out.

    python -m bench.quality DATA/scifact DATA/cosqa --limit-queries 200

Every peer runs with the settings its documentation starts from (`default`), then with its best simple ones (`best`);
the adapters say which. Vectors are those of Dowse's index of the collection, so that no peer is judged by another
model.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from bench import cache, commands
from bench.figures import machine, percentile
from bench.peers import DOWSE, Peer, Talk
from dowse.evaluate.collection import as_document, folder_name, opened
from dowse.evaluate.datasets import Dataset, load
from dowse.evaluate.metrics import ndcg
from dowse.identity import id_number
from dowse.models import open_embedder
from dowse.models.registry import DEFAULT
from dowse.ports import Embedder

SETTINGS = ("default", "best")
K = 10
LIMIT = 200  # questions a set; chosen: some peers take 0.3 s of CPU a question
_BM25 = ("rank-bm25==0.2.2", "PyStemmer", "numpy")
_TORCH = "torch==2.13.0"

QUALITY = (
    Peer(
        "langchain",
        "quality_langchain.py",
        "langchain",
        ("langchain==1.4.7", "langchain-classic==1.0.8", "langchain-community==0.4.2", *_BM25),
    ),
    Peer(
        "llamaindex",
        "quality_llamaindex.py",
        "llamaindex",
        ("llama-index-core==0.14.25", "llama-index-retrievers-bm25==0.8.0"),
    ),
    Peer("haystack", "quality_haystack.py", "haystack", ("haystack-ai==3.4.0",)),
    Peer("txtai", "quality_txtai.py", "txtai", (_TORCH, "txtai==9.14.0")),
    Peer("lancedb-hybrid", "quality_lance.py", "lancedb", ("lancedb==0.40.0", "numpy")),
    Peer("chroma-dense", "quality_chroma.py", "chroma", ("chromadb==1.5.9", "numpy")),
    Peer(
        "bm25s-alone", "quality_bm25s.py", "words", ("rank-bm25==0.2.2", "bm25s==0.3.16", "tantivy==0.27.0", *_BM25[1:])
    ),
)


@dataclass(frozen=True)
class Outcome:
    """One engine with one setting on one collection."""

    engine: str
    setting: str
    dataset: str
    ndcg: tuple[float, ...]  # a value a question
    index_cpu_s: float
    query_cpu_ms: tuple[float, ...]
    rss_mb: float
    import_cpu_s: float

    def summary(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "setting": self.setting,
            "dataset": self.dataset,
            "questions": len(self.ndcg),
            "ndcg@10": mean(self.ndcg),
            "index_cpu_s": self.index_cpu_s,
            "query_cpu_p50_ms": median(self.query_cpu_ms),
            "query_cpu_p99_ms": percentile(self.query_cpu_ms, 0.99),
            "rss_mb": self.rss_mb,
            "import_cpu_s": self.import_cpu_s,
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+", type=Path, help="folders in the BEIR layout")
    parser.add_argument("--limit-queries", type=int, default=LIMIT)
    parser.add_argument("--peers", help="names joined by commas; default: all")
    parser.add_argument(
        "--eval-cache", type=Path, help="where `dowse eval` keeps its indexes; default: the bench cache"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    embedder = open_embedder(DEFAULT, models_folder=commands.models_folder(), threads=os.cpu_count() or 1)
    if embedder is None:
        raise SystemExit(f"the model {DEFAULT} cannot be opened; run `dowse models pull {DEFAULT}`")
    wanted = [peer for peer in QUALITY if not options.peers or peer.name in options.peers.split(",")]
    outcomes: list[Outcome] = []
    versions: dict[str, Any] = {}
    indexes = options.eval_cache or cache.folder("eval")
    for folder in options.datasets:
        dataset = load(folder).limited(options.limit_queries)
        place = exported(dataset, indexes, embedder)
        outcomes.append(_own(dataset, place, indexes / folder_name(dataset, embedder, chunked=False)))
        for peer in wanted:
            for setting in SETTINGS:
                outcome, facts = _ranked(peer, setting, dataset, place)
                versions[peer.name] = facts["versions"]
                outcomes.append(outcome)
                print(f"{dataset.name:12} {peer.name:16} {setting:8} {mean(outcome.ndcg):.4f}", flush=True)
        kept = cache.folder("results") / "quality.json"
        whole = {"machine": machine(), "versions": versions, "outcomes": [each.summary() for each in outcomes]}
        for file in {kept, options.json or kept}:  # after every collection: an interrupted run leaves what it has
            file.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    _show(outcomes)


def exported(dataset: Dataset, indexes: Path, embedder: Embedder) -> Path:
    """A folder with what every engine gets: texts, questions and the vectors of both."""
    name = f"{dataset.name}-{dataset.content_hash}-{dataset.split}-{len(dataset.questions)}"
    place = cache.folder("quality", name)
    if (place / "whole").exists():
        return place
    documents = [as_document(dataset.name, text, chunked=False) for text in dataset.documents]
    numbers = np.array([id_number(each.chunks[0].id) for each in documents], np.uint64)
    with opened(dataset, indexes, embedder) as collection:
        matrix, there = collection.store.reader().vectors(numbers)
    if not there.all():
        raise SystemExit(f"{dataset.name}: {int((~there).sum())} documents have no vector; run the command again")
    np.save(place / "corpus.npy", matrix)
    with (place / "corpus.jsonl").open("w", encoding="utf-8") as out:
        for text in dataset.documents:
            whole = f"{text.title}\n{text.text}" if text.title else text.text
            out.write(json.dumps({"id": text.id, "text": whole}) + "\n")
    texts = [each.text for each in dataset.questions]
    np.save(place / "queries.npy", embedder.embed(texts, role="query"))
    (place / "queries.json").write_text(json.dumps(texts), "utf-8")
    (place / "whole").touch()
    return place


def _ranked(peer: Peer, setting: str, dataset: Dataset, place: Path) -> tuple[Outcome, dict[str, Any]]:
    with Talk(peer) as talk:
        facts = talk.ask("facts")["value"]
        reply = talk.ask("rank", folder=str(place), setting=setting)
    return _outcome(peer.name, setting, dataset, reply, facts["import_cpu_s"]), facts


def _own(dataset: Dataset, place: Path, index: Path) -> Outcome:
    with Talk(DOWSE) as talk:
        reply = talk.ask("rank", folder=str(place), index=str(index))
    return _outcome("dowse", "default", dataset, reply, reply["value"]["import_cpu_s"])


def _outcome(engine: str, setting: str, dataset: Dataset, reply: dict[str, Any], import_cpu_s: float) -> Outcome:
    value = reply["value"]
    scores = tuple(
        ndcg(list(dict.fromkeys(found)), dataset.grades[question.id], K)
        for question, found in zip(dataset.questions, value["found"], strict=True)
    )
    cost = value["index_cpu_s"], tuple(value["cpu_ms"]), reply["rss_mb"], import_cpu_s
    return Outcome(engine, setting, dataset.name, scores, *cost)


def _show(outcomes: list[Outcome]) -> None:
    """A line an engine and setting, best first: nDCG@10 by collection and mean, then what it costs."""
    names = list(dict.fromkeys(each.dataset for each in outcomes))
    rows = []
    for engine, setting in dict.fromkeys((each.engine, each.setting) for each in outcomes):
        own = [each for each in outcomes if (each.engine, each.setting) == (engine, setting)]
        cpu = [ms for each in own for ms in each.query_cpu_ms]
        scores = [mean(each.ndcg) for each in own]
        costs = (sum(each.index_cpu_s for each in own), median(cpu), percentile(cpu, 0.99), max(e.rss_mb for e in own))
        rows.append((mean(scores), engine, setting, scores, costs, median(each.import_cpu_s for each in own)))
    print(f"{'engine':16} {'setting':8} {'mean':>6} " + " ".join(f"{name[:9]:>9}" for name in names), end="")
    print(f" {'index s':>8} {'p50 ms':>8} {'p99 ms':>8} {'RSS MB':>7} {'import s':>8}")
    for average, engine, setting, scores, costs, imported in sorted(rows, key=lambda row: -row[0]):
        print(f"{engine:16} {setting:8} {average:6.4f} " + " ".join(f"{each:9.4f}" for each in scores), end="")
        print(f" {costs[0]:8.1f} {costs[1]:8.2f} {costs[2]:8.2f} {costs[3]:7.0f} {imported:8.2f}")


if __name__ == "__main__":
    main()
