"""The front door: what a user may write as the embedder, and what comes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contracts.tiny_encoder import HIDDEN, random_encoder, write_folder
from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.models import fetch, registry
from dowse.models.choose import open_embedder
from dowse.models.fetch import pull
from dowse.models.registry import ENTRIES


def opened(spec: str, models_folder: Path) -> object:
    return open_embedder(spec, models_folder=models_folder, allow_fetch=False)


@pytest.mark.parametrize("spec", ["none", "", " none "])
def test_none_is_no_embedder(tmp_path: Path, spec: str) -> None:
    assert opened(spec, tmp_path) is None


@pytest.mark.parametrize(("spec", "dimension"), [("hash", 256), ("hash:64", 64), ("hash-64", 64)])
def test_hash_may_name_its_dimension(tmp_path: Path, spec: str, dimension: int) -> None:
    embedder = open_embedder(spec, models_folder=tmp_path)
    assert embedder is not None
    assert embedder.dimension == dimension


@pytest.mark.parametrize("spec", ["hash:", "hash:x", "hash:-4", "hash:2", "hash:1.5"])
def test_a_hash_without_a_sensible_dimension_is_refused(tmp_path: Path, spec: str) -> None:
    if spec == "hash:":
        assert opened(spec, tmp_path) is not None
        return
    with pytest.raises(BadRequestError, match="hash:256"):
        opened(spec, tmp_path)


@pytest.mark.parametrize(
    ("spec", "guess"),
    [("granite-embeding-30m", "granite-embedding-30m-english"), ("all-minilm-l6", "all-MiniLM-L6-v2")],
)
def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path, spec: str, guess: str) -> None:
    with pytest.raises(NotFoundError, match=f"did you mean '{guess}'"):
        opened(spec, tmp_path)


def test_a_name_like_nothing_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="known names: granite") as caught:
        opened("zzzzzz", tmp_path)
    assert "did you mean" not in str(caught.value)


def test_a_folder_is_opened_by_its_path(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "my-encoder", random_encoder(1))
    embedder = open_embedder(str(folder), models_folder=tmp_path / "models")
    assert embedder is not None
    assert embedder.model.startswith("my-encoder+")
    assert embedder.embed(["w1"], role="query").shape == (1, HIDDEN)


def test_a_relative_folder_wins_over_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "org" / "name", random_encoder(1))
    monkeypatch.chdir(tmp_path)
    embedder = open_embedder("org/name", models_folder=tmp_path / "models", allow_fetch=False)
    assert embedder is not None
    assert embedder.model.startswith("name+")


@pytest.mark.parametrize("spec", ["/no/such/folder", "./nowhere", "../nowhere", "~/no-such-model"])
def test_a_path_that_does_not_exist_is_not_taken_for_a_name(tmp_path: Path, spec: str) -> None:
    with pytest.raises(NotFoundError, match="no model folder"):
        opened(spec, tmp_path)


def test_an_empty_folder_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"config\.json and no model\.safetensors"):
        opened(str(tmp_path), tmp_path)


@pytest.mark.parametrize("spec", [ENTRIES[0].name, ENTRIES[1].hub_id, ENTRIES[1].name.upper(), "org/model"])
def test_an_absent_model_says_how_to_get_it(tmp_path: Path, spec: str) -> None:
    with pytest.raises(ModelUnavailableError, match="dowse models pull"):
        opened(spec, tmp_path)


def test_an_unknown_pack_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.hmsemb").write_bytes(b"HMSEMB01")
    with pytest.raises(BadRequestError, match="not a pack that Dowse knows"):
        opened(str(tmp_path / "other.hmsemb"), tmp_path)
    with pytest.raises(NotFoundError, match="no model file"):
        opened(str(tmp_path / "absent.hmsemb"), tmp_path)


def test_an_address_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=r"http://localhost:1/v1#my-model"):
        opened("http://localhost:1/v1", tmp_path)


def test_an_address_is_opened_without_being_asked(tmp_path: Path) -> None:
    embedder = open_embedder("http://localhost:1/v1#some-model", models_folder=tmp_path)
    assert embedder is not None
    assert embedder.model == "some-model@localhost:1"


def test_pull_refuses_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="did you mean"):
        pull("all-MiniLM", tmp_path)


def test_every_known_model_is_listed_with_its_state(tmp_path: Path) -> None:
    assert [state.entry.name for state in fetch.states(tmp_path)] == [entry.name for entry in ENTRIES]
    assert all(state.path is None for state in fetch.states(tmp_path))
    assert ENTRIES[0].name == registry.DEFAULT


def test_hashes_are_sha256_and_names_differ() -> None:
    for entry in ENTRIES:
        assert all(len(bytes.fromhex(file.sha256)) == 256 // 8 for file in entry.files)
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)


def test_opening_nothing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from pathlib import Path; from dowse.models import fetch\n"
        "from dowse.models.choose import open_embedder\n"
        "open_embedder('none', models_folder=Path('x')); fetch.states(Path('x'))\n"
        "heavy = ('numpy', 'onnxruntime', 'tokenizers', 'huggingface_hub', 'urllib.request')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "[]"
