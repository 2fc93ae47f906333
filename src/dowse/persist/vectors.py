"""Flat vectors: unit vectors go in, the nearest come out, through ever finer copies of the same rows.

1-bit sign codes around the mean choose a few thousand survivors, int8 a few hundred of those, 16 bits the answer. No
graph and no training: rows are appended, and a filter is a mask before the scan, so a selective one costs less, not
more, and never starves. Few rows, or few that pass the filter, need no codes.

The 16 bits are the int8 and another one that says what rounding left of it: 768 bytes a vector of 384 dimensions, where
float32 beside int8 took 1,920, and a cosine is off by some 2e-6. The truth in SQLite has float32.

    slots    the chunk a vector belongs to, by its row in the other derived files
    coarse   int8, each row scaled to its largest value; `scales` has the scale
    fine     int8, what is left of each value, in 1/254 of a coarse step
    signs-N-W  1 bit a dimension, from EXACT_ROWS rows on, the W-th 64 of them; N counts how often the mean was taken
             anew, `mean-N` is it. One file a word, so that a scan adds up whole columns: half the time of rows of words
             (the last few rows have none yet: int8 goes through all of them)
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dowse.errors import BadRequestError
from dowse.persist.arrays import PartReader, PartWriter
from dowse.persist.kernel import COARSE_STEPS, FINE_STEPS, NUMPY, Kernel, Packed, Rows
from dowse.ports import Matrix, Values, Vector

EXACT_ROWS = 4096  # a scan of these in int8 costs what choosing survivors would; chosen
_FINAL = 4  # 16 bits rescore this many times what was asked for
_MEAN_GROWTH = 8  # the mean is taken anew when there are this many times the rows it was taken from; chosen
_FEW = 4096  # rows whose cosines are remembered for the next question; chosen
# Rows that may wait for their codes, while a writer writes and when it has ended, so that an update writes six files
# less: .02 ms of a search.
_UNCODED_ROWS, _UNSETTLED_ROWS = 512, 128
_SCAN_ROWS = 1 << 14  # rows at a time, so that a block stays in the cache


def survivors(rows: int, k: int) -> int:
    """How many rows the sign codes leave: 3,162 of 100,000, 10,000 of a million; recall@10 ≥ .99 (lab/store.md)."""
    return max(10 * isqrt(rows), 10 * k, 1000)


def check_vectors(vectors: Matrix, rows: int, dimension: int) -> None:
    """Refuse what would poison every search after it."""
    if vectors.ndim != 2 or vectors.shape != (rows, dimension):
        raise BadRequestError(
            f"{rows} vectors of {dimension} dimensions were due, not an array of shape {vectors.shape}"
        )
    lengths = np.sqrt(np.einsum("rd,rd->r", vectors, vectors))
    if (np.abs(lengths - 1) <= 1e-3).all():  # which is false of what is no number
        return
    if not np.isfinite(vectors).all():
        raise BadRequestError("a vector holds NaN or infinity; the model is broken or its input was")
    found = float(lengths[int(np.argmax(np.abs(lengths - 1)))])
    raise BadRequestError(f"vectors must have length 1, one has {found:.4g}; normalise them, and drop empty ones")


class VectorWriter:
    """Appends vectors to a part; `publish` makes them searchable."""

    def __init__(self, part: PartWriter, dimension: int) -> None:
        self.part = part
        self.rows = part.state.rows
        self._dimension = dimension
        self._epoch = int(part.state.facts.get("epoch", 0))
        self._mean_rows = int(part.state.facts.get("mean_rows", 0))
        self._mean: Vector | None = None
        if self._epoch:
            self._mean = PartReader(part.folder, part.state).array(f"mean-{self._epoch}", "<f4").copy()
        self._coded = part.size(f"signs-{self._epoch}-0") // 8

    def append(self, slots: NDArray[np.int64], vectors: Matrix) -> None:
        if not len(slots):
            return
        self.part.append("slots", slots.astype("<u4"))
        kept = packed(vectors)
        self.part.append("coarse", kept.coarse)
        self.part.append("fine", kept.fine)
        self.part.append("scales", kept.scales)
        self.rows += len(slots)

    def publish(self, seq: int) -> None:
        """Searchable from here on."""
        if self.rows - self._coded > _UNCODED_ROWS:
            self._code()
        self._facts_published(seq)
        if self.rows >= max(EXACT_ROWS, _MEAN_GROWTH * self._mean_rows):
            self._take_mean()
            self._facts_published(seq)

    def settle(self) -> None:
        """A search goes through few rows without codes from here on."""
        if self._mean is not None and self.rows - self._coded > _UNSETTLED_ROWS:
            self._code()
            self._facts_published(self.part.state.seq)

    def _code(self) -> None:
        """Give the rows codes that have none yet, as soon as there is a mean."""
        if self._mean is not None:
            coarse, fine = (self.part.array(name, np.int8).reshape(-1, self._dimension) for name in ("coarse", "fine"))
            self._append_signs(Packed(coarse, fine, self.part.array("scales", "<f4")), self._coded, self._mean)

    def _facts_published(self, seq: int) -> None:
        self.part.publish(self.rows, seq, {"epoch": self._epoch, "mean_rows": self._mean_rows})

    def _take_mean(self) -> None:
        """Code all rows again around a mean that fits them better."""
        kept = _kept(PartReader(self.part.folder, self.part.state), self._dimension)
        rows = range(0, self.rows, _SCAN_ROWS)
        sums = [_block(kept, start).sum(axis=0, dtype=np.float64) for start in rows]
        mean = np.asarray(np.sum(sums, axis=0) / self.rows, np.float32)
        old, self._epoch = self._epoch, self._epoch + 1
        self.part.append(f"mean-{self._epoch}", mean.astype("<f4"))
        self._append_signs(kept, 0, mean)
        self.part.drop(f"mean-{old}")
        for word in range(_words(self._dimension)):
            self.part.drop(f"signs-{old}-{word}")
        self._mean, self._mean_rows = mean, self.rows

    def _append_signs(self, kept: Packed, first: int, mean: Vector) -> None:
        for start in range(first, self.rows, _SCAN_ROWS):
            for word, column in enumerate(sign_codes(_block(kept, start), mean).T):
                self.part.append(f"signs-{self._epoch}-{word}", column)
        self._coded = self.rows


def packed(vectors: Matrix) -> Packed:
    """As they are kept."""
    scales = np.abs(vectors).max(axis=1).astype("<f4") / np.float32(COARSE_STEPS)
    steps = vectors / scales[:, None]
    coarse = np.rint(steps)
    steps -= coarse
    steps *= FINE_STEPS
    return Packed(coarse.astype(np.int8), np.rint(steps, out=steps).astype(np.int8), scales)


def rounding_error(vector: Vector) -> float:
    """The most that a value of this vector is off by when it is kept: half a step and some rounding of float32."""
    return 0.6 * float(np.abs(vector).max()) / COARSE_STEPS / float(FINE_STEPS)


def _kept(part: PartReader, dimension: int) -> Packed:
    return Packed(
        part.array("coarse", np.int8, dimension), part.array("fine", np.int8, dimension), part.array("scales", "<f4")
    )


def _block(kept: Packed, start: int) -> Matrix:
    return NUMPY.unpacked(np.arange(start, min(start + _SCAN_ROWS, len(kept.scales))), kept)


def _words(dimension: int) -> int:
    """64-bit words that hold a sign code."""
    return -(-dimension // 64)


def sign_codes(vectors: Matrix, mean: Vector) -> NDArray[np.uint64]:
    """One bit a dimension, padded to whole 64-bit words."""
    packed = np.packbits(vectors > mean, axis=-1)
    padding = -packed.shape[-1] % 8
    if padding:
        packed = np.concatenate([packed, np.zeros((*packed.shape[:-1], padding), np.uint8)], axis=-1)
    return packed.view("<u8")


class VectorReader:
    """Search over the vectors of one moment. Rows are numbered as they were appended; `slots` says whose they are."""

    def __init__(self, part: PartReader, dimension: int, kernel: Kernel = NUMPY) -> None:
        self.dimension = dimension
        self._kernel = kernel
        self.rows = part.state.rows
        self.slots: NDArray[np.uint32] = part.array("slots", "<u4")
        self._kept = _kept(part, dimension)
        epoch = int(part.state.facts.get("epoch", 0))
        self._signs = [part.array(f"signs-{epoch}-{word}", "<u8") for word in range(_words(dimension))]
        self._mean = part.array(f"mean-{epoch}", "<f4")
        self._coded = len(self._signs[0])
        self._lately: tuple[Vector, Rows, Values] | None = None

    def search(self, vector: Vector, k: int, allowed: Rows | None, beside: Packed | None = None) -> tuple[Rows, Values]:
        """The best k rows by cosine, best first, of all or of those allowed, which may be given side by side, too."""
        total = self.rows if allowed is None else len(allowed)
        if total <= max(EXACT_ROWS, survivors(self.rows, k)) or not len(self._mean):
            rows = np.arange(self.rows) if allowed is None else allowed
        else:
            code = sign_codes(vector[None, :], self._mean)[0]
            coded, uncoded = self._by_codes(allowed)
            # As many of the passing ones as of all; fewer lose recall.
            rows = self._kernel.nearest_codes(self._signs, code, survivors(self.rows, k), coded)
            if len(uncoded):
                rows = np.concatenate([rows, uncoded])
        nearest = self._nearest(vector, _FINAL * k, rows)
        if nearest is allowed and beside is not None:
            cosines = self._kernel.dots(np.arange(len(nearest)), beside, vector).astype(np.float64)
        else:
            cosines = self._kernel.dots(nearest, self._kept, vector).astype(np.float64)
        if nearest is allowed and 0 < len(nearest) <= _FEW:
            self._lately = (vector, nearest, cosines)
        order = _largest(cosines, k)
        return nearest[order], cosines[order]

    def score(self, vector: Vector, rows: Rows) -> Values:
        """Fusion asks for rows that a search with the same vector has scored, where few were allowed: one and all."""
        lately = self._lately
        if lately is not None and lately[0] is vector:
            _, known, cosines = lately
            at = np.minimum(known.searchsorted(rows), len(known) - 1)
            if (known[at] == rows).all():
                return cosines[at]
        return self._kernel.dots(rows, self._kept, vector).astype(np.float64)

    def beside(self, rows: Rows) -> Packed:
        """A copy of some rows, side by side: dots take half as long as when they are picked from all over the file."""
        found = Packed(self._kept.coarse[rows], self._kept.fine[rows], self._kept.scales[rows])
        for each in found:
            each.setflags(write=False)  # as mapped files are: compiled loops take the two for different types
        return found

    def get(self, rows: Rows) -> Matrix:
        return self._kernel.unpacked(rows, self._kept)

    def _by_codes(self, allowed: Rows | None) -> tuple[Rows | None, Rows]:
        """Of the rows, all or those allowed, which ascend, those that have codes, and those that wait for them."""
        if allowed is None:
            return None, np.arange(self._coded, self.rows)
        at = int(np.searchsorted(allowed, self._coded))
        return allowed[:at], allowed[at:]

    def _nearest(self, vector: Vector, count: int, rows: Rows) -> Rows:
        """By the coarse half; those that are few are not worth a choice."""
        if len(rows) <= 2 * count:
            return rows
        approximate = self._kernel.coarse_dots(rows, self._kept, vector)
        return rows[np.argpartition(approximate, len(rows) - count)[len(rows) - count :]]


def _largest(values: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Positions of the k largest, largest first."""
    if len(values) > 4 * k:
        head = np.argpartition(values, len(values) - k)[len(values) - k :]
        return head[np.argsort(-values[head], kind="stable")]
    return np.argsort(-values, kind="stable")[:k]
