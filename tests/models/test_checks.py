"""Matrices that may not leave an embedder, and texts that may enter one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dowse.errors import ModelUnavailableError
from dowse.models.checks import plain, unit_rows


def check(matrix: object, rows: int = 2, dimension: int = 3) -> np.ndarray:
    return unit_rows(matrix, rows=rows, dimension=dimension, model="m")


def test_rows_become_unit_length() -> None:
    found = check([[3, 4, 0], [0, 0, 0.5]])
    np.testing.assert_allclose(found, [[3 / 5, 4 / 5, 0], [0, 0, 1]], rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1, 0, 0]], "1 × 3 where 2 × 3"),
        ([[1, 0, 0]] * 3, "3 × 3 where 2 × 3"),
        ([[1, 0], [0, 1]], "2 × 2 where 2 × 3"),
        ([1, 0, 0], "3 where 2 × 3"),
        (7, "a single number where"),
        ([[1, 0, 0], [1, float("nan"), 0]], "NaN or infinity in row 1"),
        ([[float("inf"), 0, 0], [1, 0, 0]], "NaN or infinity in row 0"),
        ([[1, 0, 0], [0, 0, 0]], "zero length in row 1"),
        ([[1, 0, 0], [1, 0]], "rows of numbers"),
        ([["a", "b", "c"]] * 2, "rows of numbers"),
        (None, "where 2 × 3"),
    ],
)
def test_a_wrong_matrix_is_refused_with_its_reason(matrix: object, reason: str) -> None:
    with pytest.raises(ModelUnavailableError, match=reason) as caught:
        check(matrix)
    assert "'m'" in str(caught.value)
    assert "dowse models list" in str(caught.value)


def test_no_rows_are_fine_when_none_were_asked_for() -> None:
    assert check(np.empty((0, 3)), rows=0).shape == (0, 3)


@given(arrays(np.float32, (4, 6), elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)))
def test_every_matrix_is_unit_or_refused(matrix: np.ndarray) -> None:
    try:
        found = check(matrix, 4, 6)
    except ModelUnavailableError:
        assert (np.abs(matrix).max(axis=1) == 0).any()
    else:
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_plain_text_stays_and_can_be_encoded(text: str) -> None:
    assert plain(text) == text


def test_half_characters_are_replaced() -> None:
    assert plain("a\ud83db") == "a?b"
