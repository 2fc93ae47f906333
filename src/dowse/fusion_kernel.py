"""Port of compiled fusion arithmetic, injected where the pipeline is assembled; without it numpy does the same."""

from __future__ import annotations

from typing import Protocol

from dowse.ports import Ids, Ranks, Table, Values

Sums = tuple[Ranks, Table, Values]  # ranks, parts, and the sum of these by chunk
How = tuple[float, float, float, float, float]
"""Hubness, smoothing, the deviation that counts as none, the least weight, the largest move."""


class FusionKernel(Protocol):
    """Compiled arithmetic over the tables of a fusion, equal to that of `query.stages` to the last digit."""

    def union(self, every: Ids) -> tuple[Ids, Ranks]:
        """Each id once, ascending, and where among those each entry's is."""

    def squares(self, scores: Table, places: Ranks, sizes: Ranks, shares: Values, least: float) -> Sums | None:
        """Fusion by z with exponent 2; None where scores are missing, or not in the order of their lists."""

    def smooth(
        self,
        near: Ranks,
        likeness: Table,
        rows: Ranks,
        scores: Values,
        parts: Table,
        dense: int,
        share: float,
        how: How,
    ) -> tuple[Values, Values]:
        """Sums of the parts, of which the row `dense` is changed, and the part that neighbours add."""
