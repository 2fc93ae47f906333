"""Checks around a model: text that it can read, vectors of unit length."""

from __future__ import annotations

from typing import Any

import numpy as np

from dowse.errors import ModelUnavailableError
from dowse.ports import Matrix


def plain(text: str) -> str:
    """Replace lone surrogates, which no tokenizer or server accepts, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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
        f"model {model!r} {reason}; Dowse discarded the batch. Run `dowse doctor`, or choose another model"
    )
