"""Values as SQLite takes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dowse.store.sql.codec import IN_LIMIT, batches, signed, unsigned


@given(values=st.lists(st.integers(), max_size=1300))
def test_batches_hold_the_same_values_in_few_lengths(values: list[int]) -> None:
    parts = list(batches(values))
    assert [each for part in parts for each in dict.fromkeys(part)] == [
        each for start in range(0, len(values), IN_LIMIT) for each in dict.fromkeys(values[start : start + IN_LIMIT])
    ]
    assert {len(part) for part in parts} <= {1 << bit for bit in range(10)}


@given(number=st.integers(0, 2**64 - 1))
def test_an_id_fits_a_signed_number_and_comes_back(number: int) -> None:
    assert -(2**63) <= signed(number) < 2**63
    assert unsigned(signed(number)) == number
