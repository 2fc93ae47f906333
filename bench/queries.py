"""Queries of the benchmarks: 200 texts with terms and vectors, the same in every run.

A quarter each: one identifier, two identifiers of one chunk, a phrase of five words, and a question in plain English
made from the first sentence of a docstring or paragraph.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import msgspec
import numpy as np

from bench import cache, corpus
from dowse.config import Config
from dowse.models.choose import open_embedder
from dowse.models.registry import DEFAULT
from dowse.tokenizer import Tokenizer

EACH = 50
SEED = 20261115
DRAWN_FROM = 10_000  # the first chunks, which every corpus has

_IDENTIFIER = re.compile(r"\b(?:[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,})\b")
_SENTENCE = re.compile(r"(?:\"\"\"|\n\n)\s*([A-Z][a-z]+(?: [\w'-]+){4,12})[.\n]")
_PHRASE = re.compile(r"[a-z]+(?: [a-z]+){4}")


class Question(msgspec.Struct, frozen=True):
    """Query as every engine under test gets it."""

    text: str
    code: list[str]
    prose: list[str]


def questions() -> Path:
    """Return the file with a JSON list; the .npy file of the same name has the vectors."""
    place = cache.folder(f"corpus-{corpus.LAYOUT}") / "queries.json"
    if not place.exists():
        texts = drawn([line.text for line in corpus.read_lines(DRAWN_FROM)])
        tokenizer = Tokenizer()
        rows = [Question(text, *tokenizer.query(text).values()) for text in texts]
        embedder = open_embedder(DEFAULT, models_folder=Config.load(Path.cwd(), os.environ).models_folder)
        if embedder is None:
            raise SystemExit(f"the model {DEFAULT} cannot be opened; run `dowse models pull {DEFAULT}`")
        np.save(place.with_suffix(".npy"), embedder.embed(texts, role="query"))
        place.write_bytes(msgspec.json.encode(rows))
    return place


def drawn(texts: list[str]) -> list[str]:
    """Draw 200 queries from these texts, in mixed order."""
    rng = random.Random(SEED)
    order = rng.sample(texts, len(texts))
    names = [found for text in order if len(found := _IDENTIFIER.findall(text)) >= 2]
    phrases = [rng.choice(found) for text in order if (found := _PHRASE.findall(text))]
    sentences = [rng.choice(found) for text in order if (found := _SENTENCE.findall(text))]
    asked = [rng.choice(each) for each in names[:EACH]]
    asked += [" ".join(rng.sample(each, 2)) for each in names[EACH : 2 * EACH]]
    asked += phrases[:EACH]
    asked += [f"how do I {each[0].lower()}{each[1:]}?" for each in sentences[:EACH]]
    return rng.sample(asked, len(asked))
