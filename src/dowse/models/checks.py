"""Steps around a model: text that it can read, threads, vectors of unit length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from dowse.errors import ModelUnavailableError
from dowse.ports import Matrix

# Texts are cut before tokenising, so that a huge one costs no more than a long one. Words have 4 to 5 characters a
# token, indented code up to 10; chosen with room.
CHARACTERS_PER_TOKEN = 32
Input = TypeVar("Input")
Output = TypeVar("Output")


def plain(text: str) -> str:
    """Replace lone surrogates, which no tokenizer or server accepts, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def in_threads(work: Callable[[Input], Output], items: Sequence[Input], threads: int) -> list[Output]:
    """Return the results in order; one item or one thread needs no pool."""
    if threads == 1 or len(items) < 2:
        return [work(each) for each in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(work, items))


def unit_rows(matrix: Any, *, rows: int, dimension: int, model: str) -> Matrix:
    """Return float32 rows of unit length; refuse another shape, NaN, infinity and zero rows."""
    try:
        found = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise _refusal(model, f"did not return rows of numbers ({err})") from err
    if found.shape != (rows, dimension):
        shape = " × ".join(map(str, found.shape)) or "a single number"
        raise _refusal(model, f"returned {shape} where {rows} × {dimension} was expected")
    lengths = np.linalg.norm(found, axis=1)
    if not np.isfinite(lengths).all():
        raise _refusal(model, f"returned NaN or infinity in row {int(np.argmin(np.isfinite(lengths)))}")
    if not (lengths > 0).all():
        raise _refusal(model, f"returned a vector of zero length in row {int(np.argmin(lengths))}")
    unit: Matrix = (found / lengths[:, None]).astype(np.float32)
    return unit


def _refusal(model: str, reason: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"model {model!r} {reason}; Dowse discarded the batch. Choose another model: `dowse models list`"
    )
