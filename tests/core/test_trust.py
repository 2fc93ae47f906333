"""Indexes and project files from elsewhere: nothing they name takes effect before the user allows it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
from dowse import trust
from dowse.config import Config
from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models.choose import open_embedder
from dowse.models.endpoint import Endpoint

SPELLINGS = [
    "http://evil.example/v1#m", " http://evil.example/v1#m", "\thttp://evil.example/v1#m\n", "HTTP://evil.example/v1#m",
    "hTTps://EVIL.example/v1#m", "http:/evil.example/v1#m", "http:///evil.example#m", "//evil.example/v1#m",
    "http://evil.example:80/v1#m", "http://me@evil.example/v1#m", "http://evil.example\\@good/v1#m", "./model",
    "/model", "~/model", "../model", "org/name", "file:///etc/passwd", "ftp://evil.example/#m", "\x0bhttp://evil.example/v1#m",
    "\u00a0http://evil.example/v1#m", "http\uff1a//evil.example/v1#m",
]  # fmt: skip


@pytest.mark.parametrize("key", ["embedder", "reranker", "llm_base_url"])
@pytest.mark.parametrize("value", SPELLINGS)
def test_a_project_file_names_no_server_and_no_model_in_any_spelling(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "dowse.toml").write_text(f"{key} = {json.dumps(value)}\n", encoding="utf-8")
    with pytest.raises(BadRequestError, match="dowse trust"):
        Config.load(tmp_path, os.environ)


@pytest.mark.parametrize("key", ["index", "models_folder"])
@pytest.mark.parametrize("value", ["/any/folder", "../folder", "~/folder", "inside/../../out", "link/x"])
def test_a_project_file_names_no_folder_outside(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "link").symlink_to("/")
    (tmp_path / "app" / "dowse.toml").write_text(f"{key} = '{value}'\n")
    with pytest.raises(BadRequestError, match="dowse trust"):
        Config.load(tmp_path / "app", os.environ)


def test_plain_names_need_no_trust_and_trust_allows_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "dowse.toml"
    file.write_text("embedder = 'hash:64'\nindex = 'idx'\nreranker = 'none'\n")
    assert Config.load(tmp_path, os.environ).embedder == "hash:64"
    file.write_text("embedder = 'http://host/v1#m'\n")
    with pytest.raises(BadRequestError):
        Config.load(tmp_path, os.environ)
    with monkeypatch.context() as patch:
        patch.setenv("DOWSE_TRUST", f"/elsewhere:{tmp_path}")
        assert Config.load(tmp_path, os.environ).embedder == "http://host/v1#m"
    trust.allow(tmp_path)
    assert Config.load(tmp_path, os.environ).embedder == "http://host/v1#m"
    assert trust.forget(tmp_path)
    assert not trust.is_trusted(file, "http://host/v1#m")


def test_trust_of_a_folder_is_not_trust_of_its_neighbour(tmp_path: Path) -> None:
    trust.allow(tmp_path / "app")
    assert trust.is_trusted(tmp_path / "app" / ".dowse", "anything")
    assert not trust.is_trusted(tmp_path / "app2" / ".dowse", "anything")
    assert not trust.is_trusted(tmp_path, "anything")


def test_an_index_that_came_with_a_clone_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index, made with a server, is copied to where its user never named that server."""
    received: list[str] = []

    class Recorder:
        model, dimension = "m@127.0.0.1:9", 2

        def embed(self, texts: list[str], *, role: str) -> object:
            import numpy as np

            received.extend(texts)
            return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))

    monkeypatch.setattr("dowse.models.choose.open_embedder", lambda *_, **__: Recorder())
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (theirs / "docs").mkdir(parents=True)
    (theirs / "docs" / "a.md").write_text("# Alpha\n\nText.\n")
    with dowse.open(theirs / ".dowse", embedder="http://127.0.0.1:9/v1#m") as engine:
        engine.index([theirs / "docs"])
        assert not engine.query("alpha").degraded
    shutil.copytree(theirs, ours)
    received.clear()
    with dowse.open(ours / ".dowse") as engine:
        found = engine.query("alpha")
        assert found.chunks
        assert any("dowse trust" in reason for reason in map(str, found.degraded))
        with pytest.raises(BadRequestError, match="dowse trust"):
            engine.index()  # the stored folder lies in the other project
        with pytest.raises(ModelUnavailableError, match="dowse trust"):
            engine.embed()
        assert received == []
    with dowse.open(theirs / ".dowse") as engine:
        assert not engine.query("alpha").degraded  # whoever made it is not asked
    trust.allow(ours)
    with dowse.open(ours / ".dowse") as engine:
        assert not engine.query("alpha").degraded
    assert received


@given(st.text(max_size=40))
def test_an_address_is_judged_as_it_is_used(text: str) -> None:
    """Whatever the parser calls no address must not be opened as one."""
    try:
        parsed = trust.parse_server(text)
    except BadRequestError:
        return
    if parsed is None:
        with pytest.raises(BadRequestError):
            Endpoint.under(text, "/x", "endpoint", api_key=None, key_variable="K")
    else:
        assert parsed.origin.startswith(("http://", "https://"))


def test_upper_case_and_blanks_open_the_same_server(tmp_path: Path) -> None:
    for spelling in ("HTTP://Host.example/v1#m", " http://Host.example/v1#m "):
        embedder = open_embedder(spelling, models_folder=tmp_path)
        assert embedder is not None
        assert embedder.model.lower() == "m@host.example"
