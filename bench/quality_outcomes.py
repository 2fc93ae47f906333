"""Outcomes of the quality benchmark: nDCG of each query and cost, kept for the next run.

What is kept is asked for by everything that could change it: collection, questions, engine, setting and the versions
that were wanted. So an interrupted comparison goes on where it stopped, and Dowse alone can be measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import numpy as np

from bench import cache
from bench.figures import percentile
from bench.peers import Peer
from dowse.evaluate.datasets import Dataset
from dowse.evaluate.metrics import Interval, difference, ndcg
from dowse.identity import text_hash

K = 10  # depth of the metric
OWN = "dowse"


@dataclass(frozen=True)
class Outcome:
    """Result of one engine with one setting on one collection."""

    engine: str
    setting: str
    dataset: str
    ndcg: tuple[float, ...]  # one value for each query
    index_cpu_s: float
    query_cpu_ms: tuple[float, ...]
    rss_mb: float
    import_cpu_s: float
    versions: Mapping[str, str]

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


def outcome(engine: str, setting: str, dataset: Dataset, reply: Mapping[str, Any], facts: Mapping[str, Any]) -> Outcome:
    """Make an outcome from the replies to `rank`, and to `facts` before it."""
    value = reply["value"]
    scores = tuple(
        ndcg(list(dict.fromkeys(found)), dataset.grades[question.id], K)
        for question, found in zip(dataset.questions, value["found"], strict=True)
    )
    cost = value["index_cpu_s"], tuple(value["cpu_ms"]), reply["rss_mb"], facts["import_cpu_s"]
    return Outcome(engine, setting, dataset.name, scores, *cost, facts["versions"])


def kept_file(peer: Peer, setting: str, dataset: Dataset) -> Path:
    asked = f"{dataset.name}-{dataset.content_hash}-{dataset.split}-{len(dataset.questions)}"
    wanted = text_hash("\n".join(peer.requirements))[:8]
    return cache.folder("results", "quality") / f"{asked}-{peer.name}-{setting}-{wanted}.json"


def save(file: Path, found: Outcome) -> None:
    file.write_text(json.dumps(asdict(found)) + "\n", "utf-8")


def load(file: Path) -> Outcome:
    row = json.loads(file.read_text("utf-8"))
    return Outcome(**(row | {name: tuple(row[name]) for name in ("ndcg", "query_cpu_ms")}))


def groups(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    """Group complete results by engine and setting, with the collections in one order."""
    sets = sorted({each.dataset for each in outcomes})
    found: dict[tuple[str, str], list[Outcome]] = {}
    for each in sorted(outcomes, key=lambda one: sets.index(one.dataset)):
        found.setdefault((each.engine, each.setting), []).append(each)
    return {key: own for key, own in found.items() if [each.dataset for each in own] == sets}


def against(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Interval]:
    """Compare Dowse with each other engine, query by query; collections count alike."""
    by_key = groups(outcomes)
    ours = next((own for (engine, _), own in by_key.items() if engine == OWN), None)
    if ours is None:
        return {}
    return {key: difference(_figures(ours), _figures(own)) for key, own in by_key.items() if key[0] != OWN}


def whole(outcomes: Sequence[Outcome], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Make the JSON that `bench.report` and `bench.plot` read."""
    compared = [
        {"engine": engine, "setting": setting, **msgspec.structs.asdict(found)}
        for (engine, setting), found in against(outcomes).items()
    ]
    versions = {each.engine: dict(each.versions) for each in outcomes}
    return {
        "machine": dict(machine),
        "versions": versions,
        "outcomes": [each.summary() for each in outcomes],
        "against": compared,
    }


def _figures(own: Sequence[Outcome]) -> list[Any]:
    return [np.array(each.ndcg) for each in own]
