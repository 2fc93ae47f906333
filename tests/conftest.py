"""What every test stands on: no network, no home directory, no settings of the person who runs it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from crash_writers import CrashWriters

_MEMORY_DISK = Path("/dev/shm")  # an fsync costs nothing there; where there is none, tests are slower


def pytest_configure() -> None:
    """Examples are the same in every run; DOWSE_THOROUGH=1 draws new ones, and more of them."""
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a background job: the programs under test would ignore it too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    settings.register_profile("same", derandomize=True, database=None, deadline=None, suppress_health_check=slow)
    settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=slow)
    settings.load_profile("thorough" if os.environ.get("DOWSE_THOROUGH") else "same")


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep a test away from the network and from home. A test that asks for real weights may use both."""
    if request.node.get_closest_marker("model"):
        yield
        return
    for name in [each for each in os.environ if each.startswith(("DOWSE_", "XDG_"))]:
        if name not in ("DOWSE_THOROUGH", "DOWSE_KILLS"):
            monkeypatch.delenv(name)
    with tempfile.TemporaryDirectory(prefix="dowse-home-") as home:
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr(socket.socket, "connect", _connect_nearby)
        yield


def _connect_nearby(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise RuntimeError(f"a test tried to reach {address[0]}; tests use no network")
    super(socket.socket, self).connect(address)


@pytest.fixture(scope="module")
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index over what a test module calls FILES, which lie beside it in the folder `shop`."""
    from http_server import indexed

    folder = tmp_path_factory.mktemp(request.module.__name__)
    return indexed(folder / "index", folder / "shop", request.module.FILES)


@pytest.fixture(scope="module")
def _shared_crash_writers() -> Iterator[CrashWriters]:
    crash_writers = CrashWriters()
    yield crash_writers
    crash_writers.close()


@pytest.fixture
def crash_writers(_shared_crash_writers: CrashWriters) -> Iterator[CrashWriters]:
    """Processes that write, to be met and killed."""
    yield _shared_crash_writers
    _shared_crash_writers.kill_all()


@pytest.fixture
def index_folder(tmp_path: Path) -> Iterator[Path]:
    """A place for an index, not made yet."""
    if not os.access(_MEMORY_DISK, os.W_OK):
        yield tmp_path / "index"
        return
    folder = Path(tempfile.mkdtemp(prefix="dowse-test-", dir=_MEMORY_DISK))
    yield folder / "index"
    shutil.rmtree(folder, ignore_errors=True)
