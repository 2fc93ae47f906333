"""Writer of small test collections in BEIR layout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

GARDEN = {
    "tomato": ("Tomatoes", "Tomatoes want sun, warm soil and a stake; pinch out the side shoots in June."),
    "bean": ("Beans", "Climbing beans need poles and give nitrogen back to the soil."),
    "slug": ("Slugs", "Slugs eat young lettuce at night; a board in the bed collects them by morning."),
    "compost": ("Compost", "A compost heap wants air, water and a mix of green and brown waste."),
    "frost": ("Frost", "Cover tender plants before the first frost; bring the pots into the shed."),
    "prune": ("Pruning", "Prune apple trees in late winter, above a bud that points outwards."),
    "water": ("Watering", "Water in the morning and at the root, so that the leaves stay dry."),
    "mulch": ("Mulch", "Straw around the plants keeps the soil wet and the weeds small."),
}
QUESTIONS = {
    "q1": "when to prune apple trees",
    "q2": "what eats my lettuce at night",
    "q3": "how to stake tomatoes",
    "q4": "protect plants from frost",
    "q5": "what goes on a compost heap",
    "q6": "keep the soil wet",
}
GRADES = {
    "q1": {"prune": 2.0},
    "q2": {"slug": 1.0},
    "q3": {"tomato": 1.0, "bean": 0.0},
    "q4": {"frost": 1.0},
    "q5": {"compost": 1.0},
    "q6": {"mulch": 2.0, "water": 1.0},
}


def write_collection(
    folder: Path,
    documents: Mapping[str, tuple[str, str]] = GARDEN,
    questions: Mapping[str, str] = QUESTIONS,
    grades: Mapping[str, Mapping[str, float]] = GRADES,
    *,
    split: str = "test",
    zipped: bool = False,
) -> Path:
    corpus = [{"_id": each, "title": title, "text": text} for each, (title, text) in documents.items()]
    asked = [{"_id": each, "text": text} for each, text in questions.items()]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", asked)):
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        file = folder / f"{name}.jsonl"
        if zipped:
            file.with_name(file.name + ".gz").write_bytes(gzip.compress(data))
        else:
            file.write_bytes(data)
    lines = [
        f"{question}\t{document}\t{grade:g}" for question, own in grades.items() for document, grade in own.items()
    ]
    (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    return folder
