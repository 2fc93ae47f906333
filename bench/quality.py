"""Benchmark of quality: nDCG@10 and cost of Dowse and its peers over the same texts and vectors.

    python -m bench.quality DATA/scifact DATA/cosqa --limit-queries 200

Every peer runs with the settings its documentation starts from (`default`), then with its best simple ones (`best`);
the adapters say which. Vectors are those of Dowse's index of the collection, so that no peer is judged by another
model.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import mean, median

import numpy as np

from bench import cache, commands, quality_outcomes
from bench.figures import machine, percentile
from bench.peers import DOWSE, Peer, PeerProcess
from bench.quality_outcomes import OWN, Outcome
from dowse.evaluate.collection import as_document, folder_name, opened
from dowse.evaluate.datasets import Dataset, load
from dowse.identity import id_number
from dowse.models.choose import open_embedder
from dowse.models.registry import DEFAULT
from dowse.ports import Embedder

SETTINGS = ("default", "best")
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+", type=Path, help="folders in the BEIR layout")
    parser.add_argument("--limit-queries", type=int, help="ask only so many of each; default: all")
    parser.add_argument("--peers", help="names joined by commas; default: all")
    parser.add_argument("--again", action="store_true", help="measure peers again that were measured before")
    parser.add_argument(
        "--eval-cache", type=Path, help="where `dowse eval` keeps its indexes; default: the bench cache"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is measured so far there, too")
    options = parser.parse_args()
    embedder = open_embedder(DEFAULT, models_folder=commands.models_folder(), threads=os.cpu_count() or 1)
    if embedder is None:
        raise SystemExit(f"the model {DEFAULT} cannot be opened; run `dowse models pull {DEFAULT}`")
    wanted = [peer for peer in QUALITY if not options.peers or peer.name in options.peers.split(",")]
    outcomes: list[Outcome] = []
    indexes = options.eval_cache or cache.folder("eval")
    for folder in options.datasets:
        dataset = load(folder).limited(options.limit_queries)
        place = exported(dataset, indexes, embedder)
        outcomes.append(_own(dataset, place, indexes / folder_name(dataset, embedder)))
        for peer in wanted:
            for setting in SETTINGS:
                outcomes.append(_ranked(peer, setting, dataset, place, again=options.again))
                print(f"{dataset.name:12} {peer.name:16} {setting:8} {mean(outcomes[-1].ndcg):.4f}", flush=True)
        if options.json:  # after every collection, so that an interrupted run keeps its results
            _write(options.json, outcomes)
    if not options.peers:  # a partial run does not replace the results of the page
        _write(cache.folder("results") / "quality.json", outcomes)
    _show(outcomes)


def _write(file: Path, outcomes: list[Outcome]) -> None:
    file.write_text(json.dumps(quality_outcomes.whole(outcomes, machine()), indent=1) + "\n", "utf-8")


def exported(dataset: Dataset, indexes: Path, embedder: Embedder) -> Path:
    """Write a folder with the input of every engine: texts, queries and the vectors of both."""
    name = f"{dataset.name}-{dataset.content_hash}-{dataset.split}-{len(dataset.questions)}"
    place = cache.folder("quality", name)
    if (place / "whole").exists():
        return place
    documents = [as_document(dataset.name, text) for text in dataset.documents]
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


def _ranked(peer: Peer, setting: str, dataset: Dataset, place: Path, *, again: bool) -> Outcome:
    file = quality_outcomes.kept_file(peer, setting, dataset)
    if file.exists() and not again:
        return quality_outcomes.load(file)
    with PeerProcess(peer) as process:
        facts = process.ask("facts")["value"]
        reply = process.ask("rank", folder=str(place), setting=setting)
    found = quality_outcomes.outcome(peer.name, setting, dataset, reply, facts)
    quality_outcomes.save(file, found)
    return found


def _own(dataset: Dataset, place: Path, index: Path) -> Outcome:
    """Measure Dowse in every run: it changes between two runs."""
    with PeerProcess(DOWSE) as process:
        facts = process.ask("facts")["value"]
        reply = process.ask("rank", folder=str(place), index=str(index))
    return quality_outcomes.outcome(OWN, "default", dataset, reply, facts | reply["value"])


def _show(outcomes: list[Outcome]) -> None:
    """Format a line for each engine and setting, best first: nDCG@10, difference to Dowse, and cost."""
    by_key, compared = quality_outcomes.groups(outcomes), quality_outcomes.against(outcomes)
    names = [each.dataset for each in next(iter(by_key.values()))]
    print(f"{'engine':16} {'setting':8} {'mean':>6} " + " ".join(f"{name[:9]:>9}" for name in names), end="")
    print(f" {'Dowse minus it':26} {'index s':>8} {'p50 ms':>8} {'p99 ms':>8} {'RSS MB':>7} {'import s':>8}")
    for (engine, setting), own in sorted(by_key.items(), key=lambda row: -mean(mean(each.ndcg) for each in row[1])):
        cpu = [ms for each in own for ms in each.query_cpu_ms]
        scores = [mean(each.ndcg) for each in own]
        found = compared.get((engine, setting))
        minus = "" if found is None else f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
        print(f"{engine:16} {setting:8} {mean(scores):6.4f} " + " ".join(f"{each:9.4f}" for each in scores), end="")
        print(f" {minus:26} {sum(each.index_cpu_s for each in own):8.1f} {median(cpu):8.2f}", end="")
        rss_mb, import_s = max(each.rss_mb for each in own), median(each.import_cpu_s for each in own)
        print(f" {percentile(cpu, 0.99):8.2f} {rss_mb:7.0f} {import_s:8.2f}")


if __name__ == "__main__":
    main()
