"""The bars on public collections, through the product; runs where DOWSE_QUALITY names a folder that has them.

    DOWSE_QUALITY=../shared/data DOWSE_MODELS=… pytest tests/evaluate/test_collections.py

Indexes are kept in DOWSE_QUALITY_CACHE, if that is given: embedding takes a quarter of an hour, all else minutes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dowse.evaluate.ablate import legs_alone
from dowse.evaluate.collection import opened
from dowse.evaluate.datasets import load
from dowse.evaluate.metrics import difference
from dowse.evaluate.run import DEFAULT, QueryRunner
from dowse.models.choose import open_embedder

FOLDER = os.environ.get("DOWSE_QUALITY")  # read here: fixtures clear the environment
CACHE = os.environ.get("DOWSE_QUALITY_CACHE")
MODELS = os.environ.get("DOWSE_MODELS")
BARS = {
    "granite-embedding-30m-english": {
        "scifact": 0.764, "cosqa": 0.593, "irc_threads": 0.451, "covidqa": 0.685, "cranfield": 0.576, "cisi": 0.459,
    },
    "all-MiniLM-L6-v2": {
        "scifact": 0.729, "cosqa": 0.581, "irc_threads": 0.452, "covidqa": 0.660, "cranfield": 0.557, "cisi": 0.456,
    },
}  # fmt: skip

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not (FOLDER and MODELS), reason="DOWSE_QUALITY and DOWSE_MODELS are not set"),
]


@pytest.mark.parametrize("model", BARS)
@pytest.mark.parametrize("name", next(iter(BARS.values())))
def test_a_collection_holds_its_bar_and_is_not_below_its_best_leg(model: str, name: str, tmp_path: Path) -> None:
    embedder = open_embedder(model, models_folder=Path(str(MODELS)), threads=os.cpu_count() or 1)
    with opened(load(Path(str(FOLDER)) / name), Path(CACHE or tmp_path), embedder) as collection:
        runner = QueryRunner(collection)
        ours = runner.run(DEFAULT)
        legs = [runner.run(setting) for setting in legs_alone(DEFAULT)]
    assert ours.metrics["ndcg@10"] >= BARS[model][name]
    best = max(legs, key=lambda leg: leg.metrics["ndcg@10"])
    assert difference([ours.figures()], [best.figures()]).high >= 0
