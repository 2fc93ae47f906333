"""Hub ids, against a small server on this machine that plays the model hub through HF_ENDPOINT."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from contracts.tiny_encoder import HIDDEN, random_encoder, write_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = """
import sys
from pathlib import Path
from dowse.errors import DowseError
from dowse.models.choose import open_embedder
try:
    embedder = open_embedder(sys.argv[1], models_folder=Path(sys.argv[2]), allow_fetch=sys.argv[3] == "fetch")
    print(embedder.model, embedder.embed(["w1 w2"], role="query").shape)
except DowseError as err:
    print(type(err).__name__, err)
"""


@contextmanager
def hub(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Serves /org/name/resolve/REVISION/FILE from root/org/name/FILE, with the headers a hub sends."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            asked.append(self.path)
            repository, _, rest = self.path.lstrip("/").partition("/resolve/")
            path = root / repository / rest.partition("/")[2]
            data = path.read_bytes() if path.is_file() else b""
            self.send_response(200 if path.is_file() else 404)
            if not path.is_file():
                known = (root / repository).is_dir()
                self.send_header("X-Error-Code", "EntryNotFound" if known else "RepoNotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if with_body:
                self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def opened(
    spec: str, models_folder: Path, endpoint: str, *, home: Path, fetch: bool = True, offline: bool = False
) -> str:
    """What a fresh process says: huggingface_hub reads its settings when it is imported."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(home),
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_ETAG_TIMEOUT": "2",
    }
    command = [sys.executable, "-c", PROGRAM, spec, str(models_folder), "fetch" if fetch else "stay"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.mark.slow
def test_a_hub_id_is_fetched_once_and_then_needs_no_hub(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "hub" / "org" / "bge-tiny", random_encoder(1))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    models = tmp_path / "models"
    with hub(tmp_path / "hub") as (endpoint, asked):
        first = opened("org/bge-tiny", models, endpoint, home=tmp_path / "home")
    assert first.startswith("org/bge-tiny+")
    assert first.endswith(f"(1, {HIDDEN})")
    assert not any("pytorch_model.bin" in path for path in asked)
    assert sorted(path.name for path in models.iterdir()) == ["org--bge-tiny", "prepared"]
    assert (models / "org--bge-tiny" / "1_Pooling" / "config.json").is_file()
    again = opened("org/bge-tiny", models, endpoint, home=tmp_path / "home", fetch=False)
    assert again == first


@pytest.mark.slow
def test_weights_that_are_not_safetensors_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "hub" / "org" / "old", random_encoder(1))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with hub(tmp_path / "hub") as (endpoint, _):
        found = opened("org/old", tmp_path / "models", endpoint, home=tmp_path / "home")
    assert found.startswith("ModelUnavailableError")
    assert "org/old on the model hub has no model.safetensors" in found
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.slow
def test_an_unknown_repository_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    with hub(tmp_path / "hub") as (endpoint, _):
        found = opened("org/nothing", tmp_path / "models", endpoint, home=tmp_path / "home")
    assert found.startswith("ModelUnavailableError")
    assert "has no public repository org/nothing" in found


@pytest.mark.slow
@pytest.mark.parametrize("offline", [False, True], ids=["closed port", "HF_HUB_OFFLINE"])
def test_a_hub_that_does_not_answer_is_unavailable(tmp_path: Path, offline: bool) -> None:
    (tmp_path / "hub").mkdir()
    with hub(tmp_path / "hub") as (endpoint, asked):
        if offline:
            found = opened("org/model", tmp_path / "models", endpoint, home=tmp_path / "home", offline=True)
            assert asked == []
    if not offline:
        found = opened("org/model", tmp_path / "models", endpoint, home=tmp_path / "home")
    assert found.startswith("ModelUnavailableError model 'org/model' is unavailable")
    assert "dowse models list" in found
