"""Fits and bins of the calibration, on artificial hits whose probability is known."""

from __future__ import annotations

import numpy as np
import pytest
from bench.calibration import LEAST, bins, fitted, nonsense, predicted


def test_a_fit_finds_the_coefficients_that_made_the_data() -> None:
    random = np.random.default_rng(1)
    features = random.normal(size=(20_000, 2))
    true = np.array([2.0, -1.0, 0.5])
    right = (random.random(20_000) < predicted(true, features)).astype(float)
    assert fitted(features, right, np.ones(20_000), ridge=0.0) == pytest.approx(true, abs=0.1)


def test_bins_name_their_error_only_beyond_a_tenth() -> None:
    chances = np.array([0.25] * LEAST + [0.75] * LEAST + [0.95] * (LEAST - 1))
    right = np.array([1.0] * 30 + [0.0] * (LEAST - 30) + [0.0] * LEAST + [0.0] * (LEAST - 1))
    first, second = bins(chances, right)  # the third bin is too small
    assert first == f"0.2-0.3\t{LEAST}\t0.25\t0.30"
    assert second == f"0.7-0.8\t{LEAST}\t0.75\t0.00\toff by more than 0.10"


def test_gibberish_repeats() -> None:
    assert nonsense(3) == nonsense(3) != nonsense(7)
    assert [len(nonsense(number).split()) for number in range(4)] == [1, 2, 3, 4]
