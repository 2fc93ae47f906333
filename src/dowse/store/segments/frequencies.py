"""Hashes of terms go in; how many living chunks hold each, and where the runs have them, comes out."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dowse.store.kernels.numpy_kernel import Kernel, Spans
from dowse.store.segments.forward import ForwardReader, Hashes, Slots, TermCounts
from dowse.store.segments.inverted import InvertedReader


class Frequencies:
    """Of one moment: what the runs say, with the chunks that no run covers yet, without the dead."""

    def __init__(
        self,
        inverted: InvertedReader,
        forward: ForwardReader,
        dead: Slots,
        kernel: Kernel,
        before: Frequencies | None = None,
    ) -> None:
        """`before` is of an earlier moment of the same generation, whose dead come first among these."""
        self._inverted = inverted
        self._forward = forward
        self._dead = dead
        self._kernel = kernel
        self._gathered: tuple[int, Hashes] = before._known() if before else (0, np.empty(0, np.uint32))

    def of(self, hashes: Hashes) -> tuple[Slots, list[Spans]]:
        """Hashes ascend. Where there are several runs, those that hold none of the terms are left out."""
        holding, spans, runs = np.zeros(len(hashes), np.int64), [], self._inverted.runs
        for run in runs:
            starts, ends = self._kernel.find(run, hashes)
            sizes = ends - starts
            if len(runs) == 1 or sizes.any():  # of one run there is nothing to leave out
                holding += sizes
                spans.append((run, starts, ends))
        if len(self._tail_terms.terms):
            holding += self._tail_terms.of(hashes)
        if len(self._dead):
            holding -= self._dead_terms.of(hashes)
        return holding, spans

    @cached_property
    def _tail_terms(self) -> TermCounts:
        return TermCounts(self._forward.terms_from(self._inverted.covered))

    @cached_property
    def _dead_terms(self) -> TermCounts:
        known, terms = self._gathered
        return TermCounts(np.concatenate([terms, self._forward.terms_of(self._dead[known:])]))

    def _known(self) -> tuple[int, Hashes]:
        """Of how many of the dead the terms have been gathered, and those: an update kills a few more."""
        found: TermCounts | None = vars(self).get("_dead_terms")
        return self._gathered if found is None else (len(self._dead), found.terms)
