"""Flat vector index: unit vectors enter, the nearest leave, through ever finer copies of the same rows.

1-bit sign codes around the mean choose a few thousand survivors, int8 chooses among those, and 16 bits give the order.
No graph and no training: rows are appended, and a filter is a mask before the scan, so a selective filter costs less
and never starves. Few rows, or few that pass the filter, need no codes.

The 16 bits are the int8 and a second one with the rounding error of the first: 768 bytes a vector of 384 dimensions,
where float32 and int8 took 1,920, and a cosine is off by some 2e-6. SQLite has float32.

    slots    the chunk a vector belongs to, by its row in the other derived files
    coarse   int8, each row scaled to its largest value; `scales` has the scale
    fine     int8, the rest of each value, in 1/254 of a coarse step
    signs-N-W  1 bit a dimension, from EXACT_ROWS rows on, the W-th 64 of them; N counts the means, `mean-N` is the
             last. One file a word, so that a scan adds up whole columns: half the time of rows of words
             (the last few rows have none yet: int8 scans all of them)
"""

from __future__ import annotations

from math import isfinite, isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowse.errors import BadRequestError, CorruptIndexError
from dowse.ports import Matrix, Values, Vector
from dowse.store.kernels.numpy_kernel import COARSE_STEPS, FINE_STEPS, NUMPY, Codes, Kernel, Packed, Rows
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.state import FileState

EXACT_ROWS = 4096  # a scan of these in int8 costs what choosing survivors would; chosen
_MEAN_GROWTH = 8  # a new mean is taken at this many times the rows of the last; chosen
# Rows that may wait for their codes, while a writer works and when it has ended: an update writes six files less, a
# search takes 0.02 ms more.
_UNCODED_ROWS, _UNMERGED_ROWS = 512, 128
_PACKED = ("coarse", "fine")
_SCAN_ROWS = 1 << 14  # rows at a time, so that a block stays in the cache


def survivors(rows: int, k: int) -> int:
    """Return how many rows the sign codes leave: 35·√rows, for recall@100 ≥ 0.995 (measured on 29,000 real vectors)."""
    return max(35 * isqrt(rows), 10 * k, 1000)


def check_vectors(vectors: Matrix, rows: int, dimension: int) -> None:
    """Refuse vectors that would break every later search."""
    if vectors.ndim != 2 or vectors.shape != (rows, dimension):
        raise BadRequestError(
            f"expected {rows} vectors of {dimension} dimensions, got an array of shape {vectors.shape}"
        )
    lengths = np.sqrt(np.einsum("rd,rd->r", vectors, vectors))
    if (np.abs(lengths - 1) <= 1e-3).all():  # false for NaN
        return
    if not np.isfinite(vectors).all():
        raise BadRequestError("a vector contains NaN or infinity; use another model: dowse reembed MODEL")
    found = float(lengths[int(np.argmax(np.abs(lengths - 1)))])
    raise BadRequestError(f"vectors must have length 1, one has {found:.4g}; normalise them, and drop empty ones")


def check_vector(vector: Vector) -> None:
    """Refuse a query vector with NaN or infinity: its cosines have no order."""
    if not isfinite(float(vector @ vector)):
        raise BadRequestError("the query vector contains NaN or infinity; use another model: dowse reembed MODEL")


class VectorSegmentWriter:
    """Writer of a model's vectors; `publish` makes them searchable."""

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
        """Make the vectors searchable."""
        if self.rows - self._coded > _UNCODED_ROWS:
            self._code()
        self._facts_published(seq)
        if self.rows >= max(EXACT_ROWS, _MEAN_GROWTH * self._mean_rows):
            self._take_mean()
            self._facts_published(seq)

    def code_rest(self) -> None:
        """Code the rows that wait, so that a search scans few rows without codes."""
        if self._mean is not None and self.rows - self._coded > _UNMERGED_ROWS:
            self._code()
            self._facts_published(self.part.state.seq)

    def _code(self) -> None:
        """Code the rows that have no codes yet, once there is a mean."""
        if self._mean is not None:
            first = self._coded * self._dimension
            coarse, fine = (
                self.part.array(name, np.int8, first).reshape(-1, self._dimension) for name in ("coarse", "fine")
            )
            scales = self.part.array("scales", "<f4", self._coded)
            self._append_signs(Packed(coarse, fine, scales), self._coded, self._mean)

    def _facts_published(self, seq: int) -> None:
        self.part.publish(self.rows, seq, {"epoch": self._epoch, "mean_rows": self._mean_rows})

    def _take_mean(self) -> None:
        """Take a new mean and code all rows again."""
        part = PartReader(self.part.folder, self.part.state)
        kept = _kept(part, self._dimension)
        part.check(_PACKED)
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
    """Pack vectors for storage."""
    scales = np.abs(vectors).max(axis=1).astype("<f4") / np.float32(COARSE_STEPS)
    steps = vectors / scales[:, None]
    coarse = np.rint(steps)
    steps -= coarse
    steps *= FINE_STEPS
    return Packed(coarse.astype(np.int8), np.rint(steps, out=steps).astype(np.int8), scales)


def rounding_error(vector: Vector) -> float:
    """Return the largest error of a packed value of this vector: half a step and some rounding of float32."""
    return 0.6 * float(np.abs(vector).max()) / COARSE_STEPS / float(FINE_STEPS)


def _kept(part: PartReader, dimension: int) -> Packed:
    """Return the packed vectors; the caller checks them."""
    coarse, fine = (part.unchecked(name, np.int8, dimension) for name in _PACKED)
    return Packed(coarse, fine, part.array("scales", "<f4"))


def _block(kept: Packed, start: int) -> Matrix:
    return NUMPY.unpacked(np.arange(start, min(start + _SCAN_ROWS, len(kept.scales))), kept)


def _words(dimension: int) -> int:
    """Return the number of 64-bit words of a sign code."""
    return -(-dimension // 64)


def sign_codes(vectors: Matrix, mean: Vector) -> NDArray[np.uint64]:
    """Return one bit a dimension, padded to whole 64-bit words."""
    packed = np.packbits(vectors > mean, axis=-1)
    padding = -packed.shape[-1] % 8
    if padding:
        packed = np.concatenate([packed, np.zeros((*packed.shape[:-1], padding), np.uint8)], axis=-1)
    return packed.view("<u8")


class VectorCopy(NamedTuple):
    """Copy of some rows: their sign codes, and the packed vectors where these are copied, too."""

    signs: tuple[Codes, ...]
    kept: Packed | None  # None: not of these rows, but of all


class VectorReader:
    """Vector search over one snapshot. Rows are numbered as they were appended; `slots` has the chunk of each."""

    def __init__(self, part: PartReader, dimension: int, kernel: Kernel = NUMPY) -> None:
        self.dimension = dimension
        self._kernel = kernel
        self.rows = part.state.rows
        self.slots: NDArray[np.uint32] = part.array("slots", "<u4")
        if part.state.files and part.state.files.get("coarse", FileState()).bytes != self.rows * dimension:
            raise CorruptIndexError(f"{part.folder} has no vectors of {dimension} dimensions; run `dowse rebuild`")
        self._kept = _kept(part, dimension)
        epoch = int(part.state.facts.get("epoch", 0))
        self._part = part
        self._sign_files = [f"signs-{epoch}-{word}" for word in range(_words(dimension))]
        self._signs = tuple(part.unchecked(name, "<u8") for name in self._sign_files)
        self._mean = part.array(f"mean-{epoch}", "<f4")

    def search(
        self, vector: Vector, k: int, allowed: Rows | None, copy: VectorCopy | None = None
    ) -> tuple[Rows, Values]:
        """At least the best k rows by cosine, in any order, of all or of those allowed; `copy` is a copy of those."""
        self._part.check(_PACKED)
        total = self.rows if allowed is None else len(allowed)
        if allowed is None or copy is None:
            rows = self._survivors(vector, k, total, self._signs, allowed)
            at, cosines = self._kernel.nearest(rows, self._kept, vector, k)
            return rows[at], cosines.astype(np.float64)
        places = self._survivors(vector, k, total, copy.signs, None)
        if copy.kept is None:
            at, cosines = self._kernel.nearest(allowed[places], self._kept, vector, k)
        else:
            at, cosines = self._kernel.nearest(places, copy.kept, vector, k)
        return allowed[places[at]], cosines.astype(np.float64)

    def score(self, vector: Vector, rows: Rows) -> Values:
        self._part.check(_PACKED)
        return self._kernel.dots(rows, self._kept, vector).astype(np.float64)

    @property
    def code_bytes(self) -> int:
        """Bytes of a row of `copy_codes`."""
        return 8 * len(self._signs)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of `copy_rows`."""
        return 2 * self.dimension + self._kept.scales.itemsize

    def copy_codes(self, rows: Rows) -> VectorCopy:
        """Copy the codes of some rows, which ascend."""
        self._part.check(self._sign_files)
        coded = rows[: int(np.searchsorted(rows, len(self._signs[0])))]
        return VectorCopy(tuple(_read_only(column[coded]) for column in self._signs), None)

    def copy_rows(self, rows: Rows) -> Packed:
        """Copy some rows into one array: dots take half as long as over the scattered rows of the file."""
        self._part.check(_PACKED)
        return Packed(*(_read_only(each[rows]) for each in self._kept))

    def get(self, rows: Rows) -> Matrix:
        self._part.check(_PACKED)
        return self._kernel.unpacked(rows, self._kept)

    def _survivors(self, vector: Vector, k: int, total: int, signs: tuple[Codes, ...], allowed: Rows | None) -> Rows:
        """Choose rows by their codes. Few rows need no choice; the last rows have no codes yet."""
        if total <= max(EXACT_ROWS, survivors(self.rows, k)) or not len(self._mean):
            return np.arange(total) if allowed is None else allowed
        self._part.check(self._sign_files)
        coded, uncoded = _by_codes(total, len(signs[0]), allowed)
        code = sign_codes(vector[None, :], self._mean)[0]
        # As many of the passing ones as of all; fewer lose recall.
        rows = self._kernel.nearest_codes(signs, code, survivors(self.rows, k), coded)
        return np.concatenate([rows, uncoded]) if len(uncoded) else rows


def _by_codes(total: int, coded: int, allowed: Rows | None) -> tuple[Rows | None, Rows]:
    """Split the rows, all or those allowed, which ascend, into those with codes and those without."""
    if allowed is None:
        return None, np.arange(coded, total)
    at = int(np.searchsorted(allowed, coded))
    return allowed[:at], allowed[at:]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, as mapped files are."""
    array.setflags(write=False)
    return array
