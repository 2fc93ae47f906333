"""Intervals are seeded, paired, and weigh collections alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.evaluate.metrics import difference, interval

FIGURES = st.lists(st.floats(0, 1), min_size=2, max_size=40).map(np.array)


@given(FIGURES)
def test_the_interval_holds_the_mean_and_is_the_same_again(figures: np.ndarray) -> None:
    found = interval([figures])
    assert found.mean == pytest.approx(figures.mean())
    assert figures.min() - 1e-9 <= found.low <= found.high <= figures.max() + 1e-9
    assert interval([figures]) == found


@given(FIGURES)
def test_a_run_does_not_differ_from_itself(figures: np.ndarray) -> None:
    found = difference([figures], [figures])
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert not found.significant


def test_the_difference_is_paired() -> None:
    """Every question gains a little, while questions differ a lot: only a paired test can see that."""
    spread = np.linspace(0, 0.9, 50)
    found = difference([spread + 0.05], [spread])
    assert (found.low, found.high) == (pytest.approx(0.05), pytest.approx(0.05))
    assert found.significant


def test_collections_count_alike_however_large() -> None:
    assert interval([np.ones(1000), np.zeros(2)]).mean == (1 + 0) / 2


def test_noise_is_not_significant() -> None:
    noise = np.tile([0.3, -0.3], 50)
    assert not difference([noise], [np.zeros(100)]).significant


def test_the_width_is_that_of_the_standard_error() -> None:
    """Half of 400 questions score 1: 1.96 standard errors of .5/√400 to each side."""
    found = interval([np.tile([0.0, 1.0], 200)])
    assert found.high - found.mean == pytest.approx(1.96 * 0.5 / 400**0.5, rel=0.1)


def test_nothing_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one figure"):
        interval([np.array([])])
