"""Both stores against the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.store_legs import StoreLegsContract
from dowse.persist.embedded import EmbeddedStore
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
