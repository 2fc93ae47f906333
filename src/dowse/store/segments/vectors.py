"""Flat vectors: unit vectors go in, the nearest come out, through ever finer copies of the same rows.

1-bit sign codes around the mean choose a few thousand survivors, int8 those of them that may be in the answer, and 16
bits the answer. No graph and no training: rows are appended, and a filter is a mask before the scan, so a selective one
costs less, not more, and never starves. Few rows, or few that pass the filter, need no codes.

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

from math import isfinite, isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowse.errors import BadRequestError
from dowse.ports import Matrix, Values, Vector
from dowse.store.kernels.numpy_kernel import COARSE_STEPS, FINE_STEPS, NUMPY, Codes, Kernel, Packed, Rows
from dowse.store.segments.arrays import PartReader, PartWriter

EXACT_ROWS = 4096  # a scan of these in int8 costs what choosing survivors would; chosen
_FEW_TIMES = 8  # so many times what is asked for are scored one and all; chosen
_MEAN_GROWTH = 8  # the mean is taken anew when there are this many times the rows it was taken from; chosen
_FEW = 4096  # and no more than these, whose cosines are remembered for the fusion; chosen
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


def check_vector(vector: Vector) -> None:
    """Refuse a question's vector that resembles nothing: comparing with what is no number has no order."""
    if not isfinite(float(vector @ vector)):
        raise BadRequestError("the question's vector holds NaN or infinity; the model is broken or its input was")


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


class Layers(NamedTuple):
    """Copies of the same rows, from coarse to fine; `signs` has the first of them."""

    signs: tuple[Codes, ...]
    kept: Packed | None  # None: not of these rows, but of all


class _Lately(NamedTuple):
    """What a search left behind: rows, ascending, with their cosines where all were worked out, or a copy of them."""

    vector: Vector
    rows: Rows
    cosines: Values | None
    kept: Packed


class VectorReader:
    """Search over the vectors of one moment. Rows are numbered as they were appended; `slots` says whose they are."""

    def __init__(self, part: PartReader, dimension: int, kernel: Kernel = NUMPY) -> None:
        self.dimension = dimension
        self._kernel = kernel
        self.rows = part.state.rows
        self.slots: NDArray[np.uint32] = part.array("slots", "<u4")
        self._kept = _kept(part, dimension)
        epoch = int(part.state.facts.get("epoch", 0))
        self._signs = tuple(part.array(f"signs-{epoch}-{word}", "<u8") for word in range(_words(dimension)))
        self._mean = part.array(f"mean-{epoch}", "<f4")
        self._lately: _Lately | None = None

    def search(self, vector: Vector, k: int, allowed: Rows | None, beside: Layers | None = None) -> tuple[Rows, Values]:
        """At least the best k rows by cosine, in any order, of all or of those allowed; `beside` is a copy of those."""
        if allowed is not None and len(allowed) <= min(_FEW_TIMES * k, _FEW):
            return self._one_and_all(vector, allowed, beside)
        signs, among = (self._signs, allowed) if beside is None else (beside.signs, None)
        rows = self._survivors(vector, k, self.rows if allowed is None else len(allowed), signs, among)
        if beside is None or allowed is None or beside.kept is None:
            rows = rows if beside is None or allowed is None else allowed[rows]
            at, cosines = self._kernel.nearest(rows, self._kept, vector, k)
            return rows[at], cosines.astype(np.float64)
        self._lately = _Lately(vector, allowed, None, beside.kept)
        at, cosines = self._kernel.nearest(rows, beside.kept, vector, k)
        return allowed[rows[at]], cosines.astype(np.float64)

    def score(self, vector: Vector, rows: Rows) -> Values:
        """Fusion asks for rows among which a search with the same vector has looked: their cosines may be known, or a
        copy of them at hand.
        """
        lately = self._lately
        if lately is not None and lately.vector is vector:
            at = np.minimum(lately.rows.searchsorted(rows), len(lately.rows) - 1)
            if (lately.rows[at] == rows).all():
                if lately.cosines is not None:
                    return lately.cosines[at]
                return self._kernel.dots(at, lately.kept, vector).astype(np.float64)
        return self._kernel.dots(rows, self._kept, vector).astype(np.float64)

    @property
    def code_bytes(self) -> int:
        """Of a row of `codes_beside`."""
        return 8 * len(self._signs)

    @property
    def row_bytes(self) -> int:
        """Of a row of `beside`."""
        return 2 * self.dimension + self._kept.scales.itemsize

    def codes_beside(self, rows: Rows) -> Layers:
        """A copy of the codes of some rows, which ascend."""
        coded = rows[: int(np.searchsorted(rows, len(self._signs[0])))]
        return Layers(tuple(_still(column[coded]) for column in self._signs), None)

    def beside(self, rows: Rows) -> Packed:
        """A copy of some rows, side by side: dots take half as long as when they are picked from all over the file."""
        return Packed(*(_still(each[rows]) for each in self._kept))

    def get(self, rows: Rows) -> Matrix:
        return self._kernel.unpacked(rows, self._kept)

    def _one_and_all(self, vector: Vector, allowed: Rows, beside: Layers | None) -> tuple[Rows, Values]:
        """Those that are few are not worth a choice."""
        if beside is not None and beside.kept is not None:
            cosines = self._kernel.dots(np.arange(len(allowed)), beside.kept, vector).astype(np.float64)
        else:
            cosines = self._kernel.dots(allowed, self._kept, vector).astype(np.float64)
        if len(allowed):
            self._lately = _Lately(vector, allowed, cosines, self._kept)
        return allowed, cosines

    def _survivors(self, vector: Vector, k: int, total: int, signs: tuple[Codes, ...], allowed: Rows | None) -> Rows:
        """By their codes. Rows that are few need none, and the last ones have none yet."""
        if total <= max(EXACT_ROWS, survivors(self.rows, k)) or not len(self._mean):
            return np.arange(total) if allowed is None else allowed
        coded, uncoded = _by_codes(total, len(signs[0]), allowed)
        code = sign_codes(vector[None, :], self._mean)[0]
        # As many of the passing ones as of all; fewer lose recall.
        rows = self._kernel.nearest_codes(signs, code, survivors(self.rows, k), coded)
        return np.concatenate([rows, uncoded]) if len(uncoded) else rows


def _by_codes(total: int, coded: int, allowed: Rows | None) -> tuple[Rows | None, Rows]:
    """Of the rows, all or those allowed, which ascend, those that have codes, and those that wait for them."""
    if allowed is None:
        return None, np.arange(coded, total)
    at = int(np.searchsorted(allowed, coded))
    return allowed[:at], allowed[at:]


def _still(array: NDArray[Any]) -> NDArray[Any]:
    """As mapped files are: compiled loops take what can be written to for another type."""
    array.setflags(write=False)
    return array
