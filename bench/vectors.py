"""Vectors of the corpus: real ones for its beginning, vectors of the same distribution for the rest.

Real vectors cost a CPU-second for some twenty chunks, so a part of the corpus is embedded with the default model, and
can be gone on with (`python -m bench.vectors --real 100000`). The other chunks get vectors of the same distribution: a
real one, moved part of the way to one of its neighbours and blurred (`grown`). `likeness` compares what matters to a
search, how near the 1st, 10th and 100th neighbour is, between real and grown sets of the same size.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench import cache, corpus
from dowse.config import Config
from dowse.identity import text_hash
from dowse.models.choose import open_embedder
from dowse.models.registry import DEFAULT
from dowse.ports import Matrix

SEED = 20261115
GROWN_FROM = 10_000  # real ones that others are generated from; chosen: each is compared with all
NEIGHBOURS = 10  # a grown vector lies between a real one and one of these; chosen
BLUR = (
    0.2  # length of the noise before normalising; by `likeness`: KS .04 to .07 at 5,000, .06 to .10 between real halves
)
SAVE_EVERY = 2048  # texts; an interrupted run loses at most these, some two minutes. Each time all are written
RANKS = (1, 10, 100)
DIMENSION = 384
FEWEST_REAL = 1000  # chosen: with fewer the generated ones would form clusters


def of_corpus(chunks: int) -> Path:
    """Return the .npy file with a float32 row for each chunk, made on first use from the real vectors."""
    place = cache.folder(f"corpus-{corpus.LAYOUT}") / f"{chunks}.npy"
    if not place.exists():
        known, real = real_vectors()
        if len(real) < FEWEST_REAL:
            raise SystemExit(
                "there are too few real vectors; run `python -m bench.vectors --real 10000` first, 100000 for the bars"
            )
        row_of = {each: row for row, each in enumerate(known)}
        rows = np.array([row_of.get(text_hash(text), -1) for text in texts(chunks)])
        matrix = np.empty((chunks, real.shape[1]), np.float32)
        matrix[rows >= 0] = real[rows[rows >= 0]]
        if (rows < 0).any():
            matrix[rows < 0] = grown(real[:GROWN_FROM], int((rows < 0).sum()))
        np.save(place.with_suffix(".partial.npy"), matrix)
        place.with_suffix(".partial.npy").rename(place)
    return place


def real_share(chunks: int) -> float:
    """Return the number of real vectors of a corpus; more may have been made since."""
    known, real = real_vectors()
    row_of = {each: row for row, each in enumerate(known)}
    rows = np.array([row_of.get(text_hash(text), -1) for text in texts(chunks)])
    own = np.load(of_corpus(chunks), mmap_mode="r")[rows >= 0]
    return float((own == real[rows[rows >= 0]]).all(axis=1).sum()) / chunks


def real_vectors() -> tuple[list[str], Matrix]:
    """Load the real vectors made so far, with the hashes of their texts."""
    place = _real_file()
    if not place.exists():
        return [], np.empty((0, DIMENSION), np.float32)
    return msgspec.json.decode(place.with_suffix(".json").read_bytes(), type=list[str]), np.load(place)


def embed_more(count: int) -> int:
    """Embed the first `count` chunks; return the number of real vectors."""
    known, done = real_vectors()
    missing = [text for text in dict.fromkeys(texts(count)) if text_hash(text) not in set(known)]
    embedder = open_embedder(DEFAULT, models_folder=Config.load(Path.cwd(), os.environ).models_folder, threads=1)
    if embedder is None:
        raise SystemExit(f"the model {DEFAULT} cannot be opened; run `dowse models pull {DEFAULT}`")
    for start in range(0, len(missing), SAVE_EVERY):
        some = missing[start : start + SAVE_EVERY]
        known, done = [*known, *map(text_hash, some)], np.concatenate([done, embedder.embed(some, role="chunk")])
        partial = _real_file().with_suffix(".partial.npy")
        np.save(partial, done)
        partial.rename(_real_file())
        _real_file().with_suffix(".json").write_bytes(msgspec.json.encode(known))
    return len(done)


def texts(chunks: int) -> list[str]:
    return [line.text for line in corpus.read_lines(chunks)]


def grown(real: Matrix, count: int, seed: int = SEED) -> Matrix:
    """Generate `count` vectors with the distribution of the real ones."""
    rng = np.random.default_rng(seed)
    near = _neighbours(real, NEIGHBOURS)
    spread = _noise_shape(real, near)
    out = np.empty((count, real.shape[1]), np.float32)
    for start in range(0, count, 4096):
        stop = min(start + 4096, count)
        first = rng.integers(0, len(real), stop - start)
        second = near[first, rng.integers(0, NEIGHBOURS, stop - start)]
        way = rng.uniform(0, 0.5, (stop - start, 1)).astype(np.float32)
        noise = rng.standard_normal((stop - start, spread.shape[0]), np.float32) @ spread
        noise *= BLUR / np.linalg.norm(noise, axis=1, keepdims=True)
        moved = (1 - way) * real[first] + way * real[second] + noise
        out[start:stop] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return out


def likeness(real: Matrix, other: Matrix, queries: Matrix) -> dict[str, float]:
    """Compare by rank: median cosines, and the distance of the distribution functions (KS, 0 to 1)."""
    size = min(len(real), len(other))
    found: dict[str, float] = {}
    ours, theirs = (-np.sort(-(queries @ each[:size].T), axis=1) for each in (real, other))
    for rank in RANKS:
        a, b = ours[:, rank - 1], theirs[:, rank - 1]
        found[f"cosine@{rank} real"] = round(float(np.median(a)), 4)
        found[f"cosine@{rank} grown"] = round(float(np.median(b)), 4)
        found[f"cosine@{rank} ks"] = round(_ks(a, b), 4)
    return found


def _ks(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    points = np.concatenate([a, b])
    shares = (np.searchsorted(np.sort(each), points, side="right") / len(each) for each in (a, b))
    first, second = shares
    return float(np.abs(first - second).max())


def _neighbours(real: Matrix, count: int) -> NDArray[np.int64]:
    """Return the row numbers of the nearest others of each row."""
    found = np.empty((len(real), count), np.int64)
    for start in range(0, len(real), 1024):
        cosines = real[start : start + 1024] @ real.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1
        found[start : start + 1024] = np.argpartition(-cosines, count, axis=1)[:, :count]
    return found


def _noise_shape(real: Matrix, near: NDArray[np.int64]) -> Matrix:
    """Return a root of the covariance of steps between neighbours: noise follows real differences."""
    steps = real - real[near[:, 0]]
    values, directions = np.linalg.eigh(np.cov(steps.T))
    return np.asarray(np.sqrt(np.maximum(values, 0))[:, None] * directions.T, np.float32)


def _real_file() -> Path:
    return cache.folder(f"corpus-{corpus.LAYOUT}") / "real.npy"


def main() -> None:
    parser = argparse.ArgumentParser(description="Embed the first chunks of the corpus; an interrupted run continues.")
    parser.add_argument("--real", type=int, default=10_000, metavar="N")
    wanted = parser.parse_args().real
    os.nice(10)
    print(f"{embed_more(wanted)} real vectors")
    _, real = real_vectors()
    half = len(real) // 2
    for name, value in likeness(real[:half], grown(real[:half], half), real[half : half + 500]).items():
        print(f"{name}  {value}")


if __name__ == "__main__":
    main()
