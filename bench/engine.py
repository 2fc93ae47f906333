"""Benchmark of the engine: one line per figure with its bar, goal and pass or fail.

    python -m bench.engine --quick             about a minute: 10,000 chunks, with LanceDB and rank_bm25
    python -m bench.engine --chunks 100000     the size of the bars, all peers; some minutes
    python -m bench.engine --chunks 1000000    Dowse alone, for growth; needs some 10 GB of disk

CPU time of single processes on one core, medians, engines in turns. Peers are built once and kept in the cache; Dowse's
own index is built anew in every run, because building it is measured, too. Every run is kept as JSON for `bench.plot`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench import cache, commands, corpus, peers, queries, vectors
from bench.figures import NO_BARS, Bars, Figure, save
from bench.query_timing import FILTERS, HYBRID_K, LEG_K, Key, TimedLeg, Times, time_queries
from bench.update_rows import fresh_rows
from dowse.models.registry import DEFAULT

QUICK_CHUNKS, BAR_CHUNKS, LARGE = 10_000, 100_000, 500_000
HYBRID_BARS: dict[str, Bars] = {"none": (3, 5), "10 %": (4.5, 8), "0.5 %": (8, 15)}  # median, 99th percentile in ms
OWN_LEGS = (
    TimedLeg("hybrid", HYBRID_K),
    TimedLeg("whole", HYBRID_K),
    TimedLeg("words", LEG_K, extra=(("leg", "bm25_nlp"),), label="bm25_nlp"),
    TimedLeg("words", LEG_K, extra=(("leg", "bm25_code"),), label="bm25_code"),
    TimedLeg("dense", LEG_K),
)
PEER_LEGS = {
    "lancedb": (TimedLeg("hybrid", HYBRID_K), TimedLeg("words", LEG_K), TimedLeg("dense", LEG_K)),
    "rank_bm25": (TimedLeg("words", LEG_K, questions=40),),
    "sqlite-fts5": (TimedLeg("words", LEG_K, questions=20),),
    "bm25s": (TimedLeg("words", LEG_K),),
    "tantivy": (TimedLeg("words", LEG_K),),
    "faiss-flat": (TimedLeg("dense", LEG_K),),
    "faiss-hnsw": (TimedLeg("dense", LEG_K),),
    "chroma": (TimedLeg("dense", LEG_K, questions=80),),
}
NUMPY = "dowse numpy"  # Dowse without the compiled kernel
QUICK_PEERS = ("lancedb", "rank_bm25")
RECALL_FILTERS = (
    ("no filter", None),
    ("50 %", ["tenth", "t0", "t1", "t2", "t3", "t4"]),
    ("10 %", ["tenth", "t3"]),
    ("0.5 %", ["part", "p7"]),
)


@dataclass
class Run:
    """State of a benchmark run: its options and the figures so far."""

    chunks: int
    quick: bool
    peer_names: tuple[str, ...]
    reuse: bool = False
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        return cache.folder("indexes") / f"dowse-{self.chunks}"

    def show(self, *figures: Figure) -> None:
        for each in figures:
            print(each.line, flush=True)
        self.figures += figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, help="10000, 100000 or 1000000")
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument(
        "--peers", help="names joined by commas, or none; default: all, two with --quick, none above 500k"
    )
    parser.add_argument("--reuse", action="store_true", help="take the index of the last run instead of building it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    chunks = options.chunks or (QUICK_CHUNKS if options.quick else BAR_CHUNKS)
    run = Run(chunks, options.quick, _peer_names(options.peers, chunks, quick=options.quick), options.reuse)
    for part in (_building, _asking, _recall, _updating, _processes, _ingesting, _embedding):
        part(run)
    if not run.quick and chunks <= BAR_CHUNKS:
        run.show(Figure("core install", commands.install_mb(), "MB", 260, 200, at_most=True))
    kept = cache.folder("results") / f"engine-{chunks}{'-quick' if run.quick else ''}.json"
    for place in {kept, options.json or kept}:
        save(place, chunks, run.figures, run.details, run.versions)


def _peer_names(wanted: str | None, chunks: int, *, quick: bool) -> tuple[str, ...]:
    if wanted is not None:
        return tuple(name for name in wanted.split(",") if name in PEER_LEGS)
    if chunks >= LARGE:
        return ()
    return QUICK_PEERS if quick else tuple(PEER_LEGS)


def _building(run: Run) -> None:
    """Index words and vectors of the whole corpus from documents in memory."""
    place = vectors.of_corpus(run.chunks)
    if not (run.reuse and run.index.exists()):
        with peers.PeerProcess(peers.DOWSE) as process:
            reply = process.ask("build", chunks=run.chunks, vectors=str(place), folder=str(run.index))
            built = reply["value"]
        run.details["build"] = {"dowse": built | {"rss_mb": reply["rss_mb"]}}
        run.show(
            Figure("building words, chunks/s of CPU", run.chunks / built["words_cpu_s"], "chunks/s"),
            Figure("building vectors, chunks/s of CPU", run.chunks / built["vectors_cpu_s"], "chunks/s"),
        )
    disk = cache.size_bytes(run.index)
    run.show(Figure("disk a chunk, vectors and truth included", disk / run.chunks, "bytes"))


def _asking(run: Run) -> None:
    """Time each leg and the whole query with each filter, engines in turn."""
    with ExitStack() as stack:
        processes = {"dowse": stack.enter_context(peers.PeerProcess(peers.DOWSE))}
        processes["dowse"].ask("open", folder=str(run.index))
        processes[NUMPY] = stack.enter_context(peers.PeerProcess(peers.DOWSE))
        processes[NUMPY].ask("open", folder=str(run.index), kernel="numpy")
        for peer in peers.SPEED:
            if peer.name in run.peer_names:
                processes[peer.name] = stack.enter_context(peers.PeerProcess(peer))
                _opened(run, processes[peer.name])
        run.versions |= {name: process.ask("facts")["value"]["versions"] for name, process in processes.items()}
        asks = {"dowse": OWN_LEGS, NUMPY: OWN_LEGS, **PEER_LEGS}
        times = time_queries(processes, asks, queries.questions(), rounds=2 if run.quick else 5)
        stages = processes["dowse"].ask(
            "stages", queries=str(queries.questions()), where=None, k=HYBRID_K, first=0, count=50
        )
        rss_mb = {name: process.ask("facts")["rss_mb"] for name, process in processes.items()}
    run.details["times"] = {" | ".join(key): each.summary() for key, each in times.items()}
    run.details["stages_ms"], run.details["rss_mb"] = stages["value"], rss_mb
    run.show(*_query_figures(run, times))
    limit: Bars = (2500, 1500) if run.chunks >= LARGE else NO_BARS
    run.show(Figure("RSS while serving", rss_mb["dowse"], "MB", *limit, at_most=True))


def _opened(run: Run, process: peers.PeerProcess) -> None:
    """Open the peer over the same corpus: LanceDB from the cache, the others built in memory and timed."""
    folder = cache.folder("indexes") / f"{process.peer.name}-{run.chunks}"
    facts = folder.with_suffix(".json")
    arguments = {"corpus": str(corpus.lines(run.chunks)), "vectors": str(vectors.of_corpus(run.chunks))}
    if process.peer is peers.LANCE and facts.exists():
        process.ask("open", folder=str(folder))
        built = json.loads(facts.read_text("utf-8"))
    else:
        shutil.rmtree(folder, ignore_errors=True)
        built = process.ask("build", **arguments, folder=str(folder))["value"]
        facts.write_text(json.dumps(built), "utf-8")
    run.details.setdefault("build", {})[process.peer.name] = built


def _query_figures(run: Run, times: dict[Key, Times]) -> Iterator[Figure]:
    at_bar = run.chunks == BAR_CHUNKS
    limit: Bars = (15, 8) if run.chunks >= LARGE else NO_BARS
    for chosen in FILTERS:
        own = times["dowse", "hybrid", chosen]
        yield Figure(f"hybrid query, filter {chosen}, CPU", own.p50, "ms", *limit, at_most=True)
        yield Figure(f"hybrid query, filter {chosen}, CPU, numpy alone", times[NUMPY, "hybrid", chosen].p50, "ms")
        yield Figure(f"hybrid query to the profile's end, filter {chosen}", times["dowse", "whole", chosen].p50, "ms")
        if lance := times.get(("lancedb", "hybrid", chosen)):
            bars = HYBRID_BARS[chosen] if at_bar or run.quick else NO_BARS
            yield Figure(f"hybrid query, filter {chosen}, LanceDB / Dowse", lance.times_of(own), "times", *bars)
            whole = lance.times_of(times["dowse", "whole", chosen])
            yield Figure(f"hybrid query to the profile's end, filter {chosen}, LanceDB / Dowse", whole, "times")
    for ask in OWN_LEGS[2:]:
        for chosen in FILTERS:
            yield Figure(f"{ask.name} leg, filter {chosen}, CPU", times["dowse", ask.name, chosen].p50, "ms")
            plain_ms = times[NUMPY, ask.name, chosen].p50
            yield Figure(f"{ask.name} leg, filter {chosen}, CPU, numpy alone", plain_ms, "ms")
    prose = times["dowse", "bm25_nlp", "none"]
    if plain := times.get(("rank_bm25", "words", "none")):
        leg_bars: Bars = (500, 1000) if at_bar else NO_BARS
        yield Figure("one BM25 leg, rank_bm25 / Dowse", plain.times_of(prose), "times", *leg_bars)
    for name in ("bm25s", "tantivy", "sqlite-fts5", "lancedb"):
        if found := times.get((name, "words", "none")):
            yield Figure(f"one BM25 leg, {name} / Dowse", found.times_of(prose), "times")
    for name in ("faiss-flat", "faiss-hnsw", "chroma", "lancedb"):
        for chosen in FILTERS:
            if found := times.get((name, "dense", chosen)):
                own = times["dowse", "dense", chosen]
                yield Figure(f"dense leg, filter {chosen}, {name} / Dowse", found.times_of(own), "times")


def _recall(run: Run) -> None:
    """Compare the vector search with exact search. Vectors are real up to the number that was embedded."""
    share = vectors.real_share(run.chunks)
    kind = "real vectors" if share == 1 else f"{100 * share:.0f} % real vectors"
    with peers.PeerProcess(peers.DOWSE) as process:
        process.ask("open", folder=str(run.index))
        for name, where in RECALL_FILTERS:
            files = {"corpus_file": str(corpus.lines(run.chunks)), "vectors": str(vectors.of_corpus(run.chunks))}
            found = process.ask("recall", queries=str(queries.questions()), where=where, k=10, **files)["value"]
            run.show(Figure(f"recall@10, {name} ({kind})", found["recall"], "", 0.99, 0.999))
            run.show(Figure(f"answers with min(10, matches) hits, {name}", found["full"], "", 1.0, 1.0))


def _updating(run: Run) -> None:
    """Time 20 chunks until they are searchable, on copies of the indexes, engines in turn."""
    if run.chunks >= LARGE:
        return
    rounds = 6 if run.quick else 16
    spent: dict[str, list[float]] = {}
    ending: list[float] = []  # the writer of Dowse syncs derived files when it closes
    syncing: list[float] = []  # LanceDB's files, which it does not sync
    with ExitStack() as stack:
        processes = []
        for peer in (peers.DOWSE, peers.LANCE) if "lancedb" in run.peer_names else (peers.DOWSE,):
            copy = cache.folder("indexes") / f"{peer.name}-update"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(cache.folder("indexes") / f"{peer.name}-{run.chunks}", copy)
            stack.callback(shutil.rmtree, copy)
            process = stack.enter_context(peers.PeerProcess(peer))
            process.ask("open", folder=str(copy), **({"read_only": False} if peer is peers.DOWSE else {}))
            processes.append(process)
        for number in range(rounds + 1):
            for process in processes:
                reply = process.ask("update", fresh=fresh_rows(number), seed=number)["value"]
                if reply["found"] < 20:
                    raise SystemExit(f"{process.peer.name} does not find what it was given: {reply}")
                if number:  # the first one loads code and files
                    spent.setdefault(process.peer.name, []).append(reply["cpu_ms"])
                    ending += [reply["close_cpu_ms"]] if process.peer is peers.DOWSE else []
                    syncing += [reply["sync_cpu_ms"]] if process.peer is peers.LANCE else []
    run.details["update_cpu_ms"] = spent
    own = median(spent["dowse"])
    run.show(
        Figure("update of 20 chunks until searchable, CPU", own, "ms"),
        Figure("  and until the writer is closed, its files synced", own + median(ending), "ms"),
    )
    if "lancedb" in spent:
        theirs = median(spent["lancedb"])
        run.show(
            Figure(
                "update of 20 chunks, LanceDB / Dowse, both synced", (theirs + median(syncing)) / own, "times", 2, 3
            ),
            Figure("  and with LanceDB as it is, not synced", theirs / own, "times"),
        )


def _processes(run: Run) -> None:
    times = 3 if run.quick else 7
    own = {"DOWSE_MODELS": str(commands.models_folder()), "DOWSE_THREADS": "1"}
    search = ["search", "--index", str(run.index), "--json", "where is the retry budget of a request set"]
    cold = commands.cpu_s(search, times, own)
    bars: Bars = (0.8, 0.5) if run.chunks <= BAR_CHUNKS else NO_BARS
    run.show(Figure("cold `dowse search`, model load included, CPU", cold, "s", *bars, at_most=True))
    words = commands.cpu_s(search, times, own | {"DOWSE_EMBEDDER": "none"})
    run.show(Figure("cold `dowse search` by words alone, CPU", words, "s"))
    help_ms = 1000 * commands.cpu_s(["--help"], times)
    run.show(Figure("`dowse --help`, CPU", help_ms, "ms", 100, 60, at_most=True))


def _ingesting(run: Run) -> None:
    files = commands.real_files(500 if run.quick else 3000)
    with peers.PeerProcess(peers.DOWSE) as process:
        found = process.ask("index_files", folder=str(files), index=str(cache.folder("indexes") / "files"))["value"]
    run.details["ingest"] = found
    rate = found["chunks"] / found["cpu_s"]
    run.show(Figure("reading + chunking + words committed, a CPU-second", rate, "chunks/s", 2000, 4000))
    run.show(Figure("… with edges between chunks", found["chunks"] / found["with_links_cpu_s"], "chunks/s"))


def _embedding(run: Run) -> None:
    lines = corpus.lines(QUICK_CHUNKS).read_text("utf-8").splitlines()
    texts = commands.embedding_texts([json.loads(line)["text"] for line in lines], 24 if run.quick else 96)
    models = {"models_folder": str(commands.models_folder()), "texts": texts}
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        own = stack.enter_context(peers.PeerProcess(peers.DOWSE))
        asks: dict[str, Callable[[], Any]] = {
            "MiniLM": lambda: own.ask("embed", model=commands.MINILM, **models),
            "granite": lambda: own.ask("embed", model=DEFAULT, **models),
        }
        if not run.quick:
            torch = stack.enter_context(peers.PeerProcess(peers.SENTENCE))
            run.versions["sentence-transformers"] = torch.ask("facts")["value"]["versions"]
            place = str(commands.minilm())
            batch = commands.SENTENCE_BATCH
            asks["torch"] = lambda: torch.ask("embed", folder=place, texts=texts, batch=batch)
        for _ in range(1 if run.quick else 3):
            for name, ask in asks.items():
                rates.setdefault(name, []).append(ask()["value"]["docs_per_s"])
    best = {name: median(values) for name, values in rates.items()}
    run.details["embedding_docs_per_s"] = best
    run.show(Figure("embedding, MiniLM int8, docs a CPU-second", best["MiniLM"], "docs/s"))
    run.show(Figure("embedding, granite int8, docs a CPU-second", best["granite"], "docs/s"))
    if "torch" in best:
        ratio = best["MiniLM"] / best["torch"]
        run.show(Figure("embedding, MiniLM int8 / sentence-transformers fp32", ratio, "times", 2, 3))


if __name__ == "__main__":
    main()
