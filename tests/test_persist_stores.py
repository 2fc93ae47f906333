"""All stores against the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.store_legs import StoreLegsContract
from dowse.persist import inverted
from dowse.persist.embedded import EmbeddedStore
from dowse.persist.kernel import open_kernel
from dowse.persist.memory import MemoryStore
from dowse.ports import Store


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

    @pytest.fixture(params=["numpy", "fast"])
    def store(
        self, index_folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Store]:
        monkeypatch.setattr(inverted, "_TAIL_ROWS", 0)
        monkeypatch.setattr(inverted, "_MOST_RUNS", 2)
        store = EmbeddedStore(index_folder, kernel=open_kernel(request.param))
        yield store
        store.close()
