"""The sample's questions keep their answers: ids in order, frozen in tests/golden.

A change of ranking shows as a diff there. When it is wanted, look at it, then write it with
`DOWSE_UPDATE_GOLDEN=1 pytest tests/evaluate/test_golden.py`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dowse
from dowse import sample
from dowse.config import Config
from dowse.engine import Engine
from dowse.sample import SampleQuery, queries

GOLDEN = Path(__file__).parents[1] / "golden"
UPDATE = bool(os.environ.get("DOWSE_UPDATE_GOLDEN"))  # read here: the fixtures below clear the environment
MODELS = os.environ.get("DOWSE_MODELS")
PINNED = 5  # hits a question
GIBBERISH = """
    asdf qwer zxcv, lkjh poiu mnbv, xyzzy plugh frobnitz, qqq www eee, blorptang snizzle, vorpal tulgey wabe,
    zzxxccvv, fghj dfgh cvbn, grumble flanx ptooie, hjkl hjkl hjkl, wibble wobble zorch, kdjfhg skdjfh, aoeu snth
    idhtn, jabberwock slithy toves, mxyzptlk, sdfkjh wqoieu zmxncb, plonk fizzwhistle, gnarfle the garthok,
    qwertyuiop, bleem florp gazorp, snorkblat qux quuz, uiop jkl nm, thrum dringle wex, vblnk trwpq, oompah zibber
    zabber, cromulent flibber, yxcv bnmq, splurge wunk wunk, drmble pfft, what is a glorpf, how does snarf the wug,
    kwyjibo embiggen, zot zot zot, tralfa madore klim, ekki ekki ptang, asdfasdfasdf, xkcd qzvw jjfk, wug blick
    dax, fep toma gazzer, nonsuch vermiculate zyx, hggttg zarniwoop, brillig gimble, lorem zipsum dolorf, pqowie
    urytla ksjdhf, mnemnop qrstuvv, tickety boo zonk, ffff gggg hhhh, yada zada wada, qoph zayin tsade, skibble
    dibble
"""
GIBBERISH_QUERIES = [" ".join(each.split()) for each in GIBBERISH.split(",")]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from _indexed(tmp_path_factory.mktemp("words") / "index", "none")


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from _indexed(tmp_path_factory.mktemp("hash") / "index", "hash")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from _indexed(tmp_path_factory.mktemp("real") / "index", "granite-embedding-30m-english")


def _indexed(place: Path, embedder: str) -> Iterator[Engine]:
    config = Config(models_folder=Path(MODELS)) if MODELS else Config()
    # A copy: where the sample lies inside a repository, its paths and ids would be that repository's.
    files = shutil.copytree(sample.root(), place.with_name("acme"))
    with dowse.open(place, config=config, embedder=embedder) as engine:
        engine.index([files])
        yield engine


def _hits(engine: Engine, query: SampleQuery) -> list[str]:
    """`path:first-last id` of each hit: the id is what is pinned, the place is for whoever reads the diff."""
    result = engine.query(query.text, top_k=10, **dict(query.filters))
    return [f"{chunk.file_path}:{chunk.start_line}-{chunk.end_line} {chunk.id}" for chunk in result.chunks]


def _listing(engine: Engine) -> str:
    return "\n".join("\n    ".join([query.text, *_hits(engine, query)[:PINNED]]) for query in queries()) + "\n"


def _check(name: str, found: str) -> None:
    file = GOLDEN / name
    if UPDATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text("utf-8"), "the ranking changed; if that is wanted, set DOWSE_UPDATE_GOLDEN=1"


def _recall(engine: Engine, kinds: set[str]) -> float:
    """The share of the questions whose file is among the ten best."""
    asked = [query for query in queries() if query.kind in kinds]
    found = [any(hit.startswith(f"{query.expect}:") for hit in _hits(engine, query)) for query in asked]
    return sum(found) / len(asked)


def test_words_alone_rank_the_sample_as_before(words: Engine) -> None:
    _check("words.txt", _listing(words))


def test_words_and_hashed_vectors_rank_the_sample_as_before(hashed: Engine) -> None:
    _check("hash.txt", _listing(hashed))


def test_words_find_every_identifier_error_and_setting(words: Engine) -> None:
    assert _recall(words, {"identifier", "error", "config", "filtered"}) == 1


@pytest.mark.model
def test_the_real_model_finds_nine_of_ten(real: Engine) -> None:
    assert _recall(real, {query.kind for query in queries()}) >= 0.9


@pytest.mark.model
def test_the_real_model_finds_most_paraphrases(real: Engine) -> None:
    """Which share no word with their answer: words alone find none of them."""
    assert _recall(real, {"paraphrase"}) >= 0.8


def test_no_hit_for_gibberish_is_shown_above_20_per_cent(words: Engine) -> None:
    _check_gibberish(words)


@pytest.mark.model
def test_no_hit_for_gibberish_is_shown_above_20_per_cent_with_vectors(real: Engine) -> None:
    _check_gibberish(real)


def _check_gibberish(engine: Engine) -> None:
    assert len(GIBBERISH_QUERIES) == 50
    for text in GIBBERISH_QUERIES:
        for group in ("none", "document"):
            result = engine.query(text, group=group)
            shown = [chunk for each in result.groups for chunk in each.chunks] or result.chunks
            assert max((chunk.confidence or 0.0 for chunk in shown), default=0.0) <= 0.2, text
