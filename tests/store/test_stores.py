"""All stores against the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.store_legs import StoreLegsContract
from dowse.ports import Store
from dowse.store.embedded import EmbeddedStore
from dowse.store.kernels.numpy_kernel import open_kernel
from dowse.store.memory import MemoryStore
from dowse.store.segments import inverted


class TestMemoryStore(StoreLegsContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestEmbeddedStore(StoreLegsContract):
    @pytest.fixture
    def store(self, index_folder: Path) -> Iterator[Store]:
        store = EmbeddedStore(index_folder)
        yield store
        store.close()


class TestEmbeddedStoreInRuns(StoreLegsContract):
    """No chunk waits in the tail: every publication makes a run, and runs are merged."""

    @pytest.fixture(params=["numpy", "native"])
    def store(
        self, index_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Store]:
        monkeypatch.setattr(inverted, "_TAIL_ROWS", 0)
        monkeypatch.setattr(inverted, "_MOST_RUNS", 2)
        store = EmbeddedStore(index_folder, kernel=open_kernel(request.param))
        yield store
        store.close()
