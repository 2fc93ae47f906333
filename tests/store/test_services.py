"""Both stores against the contract of the service graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.services import AUTH, CALLS, SHOP, ServiceGraphContract
from dowse.ports import Store
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore


class TestMemoryStore(ServiceGraphContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestEmbeddedStore(ServiceGraphContract):
    @pytest.fixture
    def store(self, index_folder: Path) -> Iterator[Store]:
        store = EmbeddedStore(index_folder)
        yield store
        store.close()


def test_the_service_graph_is_there_after_closing_and_opening_again(index_folder: Path) -> None:
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    writer.put_services([SHOP, AUTH], [CALLS])
    writer.close()
    store.close()
    again = EmbeddedStore(index_folder, read_only=True)
    assert list(again.reader().services()) == [AUTH, SHOP]
    assert list(again.reader().service_edges()) == [CALLS]
    again.close()
