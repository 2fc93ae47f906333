"""What is made of a model's weights is kept: the same arrays come back, and damage or other weights make them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from contracts.tiny_encoder import random_encoder, write_folder
from dowse.errors import ModelUnavailableError
from dowse.models.embed_onnx import OnnxEmbedder
from dowse.models.onnx import prepared
from dowse.models.onnx import prepared as kept
from dowse.models.onnx.graph_builder import Pooling
from dowse.models.onnx.recipe import Recipe

ARRAYS = {
    "bytes": np.frombuffer(b"graph", np.uint8),
    "weight": np.arange(6, dtype=np.int8).reshape(2, 3),
    "scale": np.array([0.5, 0.25], np.float32),
    "none": np.empty((0, 3), np.int32),
}
TEXTS = ["w1 w2 w3", "w7", ""]
RECIPE = Recipe("tiny", Pooling.MEAN)


def test_arrays_come_back_as_they_went_in(tmp_path: Path) -> None:
    kept.keep(tmp_path / "deep" / "file", "key", ARRAYS)
    found = kept.kept(tmp_path / "deep" / "file", "key")
    assert found is not None
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable
    assert os.listdir(tmp_path / "deep") == ["file"]


def test_every_array_begins_where_a_cache_line_does(tmp_path: Path) -> None:
    kept.keep(tmp_path / "file", "key", ARRAYS)
    found = kept.kept(tmp_path / "file", "key")
    assert found is not None
    assert [array.ctypes.data % 64 for array in found.values() if array.size] == [0, 0, 0]


def test_another_key_finds_nothing(tmp_path: Path) -> None:
    kept.keep(tmp_path / "file", "key", ARRAYS)
    assert kept.kept(tmp_path / "file", "other") is None
    assert kept.kept(tmp_path / "nowhere", "key") is None


@pytest.mark.parametrize("left", [0, 4, 15, 16, 100, -64, -1])
def test_a_file_that_was_cut_off_counts_as_none(tmp_path: Path, left: int) -> None:
    kept.keep(tmp_path / "file", "key", ARRAYS)
    data = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(data[:left])
    assert kept.kept(tmp_path / "file", "key") is None


def test_a_file_of_another_kind_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"something else that is long enough")
    assert kept.kept(tmp_path / "file", "key") is None


def test_a_damaged_header_counts_as_none(tmp_path: Path) -> None:
    kept.keep(tmp_path / "file", "key", ARRAYS)
    data = bytearray((tmp_path / "file").read_bytes())
    data[data.index(b"{")] ^= 0x40
    (tmp_path / "file").write_bytes(data)
    assert kept.kept(tmp_path / "file", "key") is None


@pytest.mark.parametrize("pooling", list(Pooling))
def test_vectors_from_what_was_kept_are_the_same_to_the_bit(tmp_path: Path, pooling: Pooling) -> None:
    folder, recipe = write_folder(tmp_path / "tiny", random_encoder(4)), Recipe("tiny", pooling)
    fresh = OnnxEmbedder(folder, recipe).embed(TEXTS, role="chunk")
    made = OnnxEmbedder(folder, recipe, keep=tmp_path / "kept").embed(TEXTS, role="chunk")
    (file,) = (tmp_path / "kept").iterdir()
    written = file.stat().st_mtime_ns
    again = OnnxEmbedder(folder, recipe, keep=tmp_path / "kept").embed(TEXTS, role="chunk")
    assert file.stat().st_mtime_ns == written
    np.testing.assert_array_equal(made, fresh)
    np.testing.assert_array_equal(again, fresh)


def test_what_was_kept_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "tiny", random_encoder(4))
    OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept")
    monkeypatch.setattr(prepared, "graph_tensors", None)  # calling it would fail
    monkeypatch.setattr(prepared, "encoder_graph", None)
    assert len(OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept").embed(TEXTS, role="chunk")) == len(TEXTS)


def test_other_weights_in_the_same_place_are_seen(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", random_encoder(4))
    OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept")
    size = (folder / "model.safetensors").stat().st_size
    write_folder(folder, random_encoder(5))
    assert (folder / "model.safetensors").stat().st_size == size
    found = OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept").embed(TEXTS, role="chunk")
    np.testing.assert_array_equal(found, OnnxEmbedder(folder, RECIPE).embed(TEXTS, role="chunk"))
    assert len(os.listdir(tmp_path / "kept")) == 1


def test_two_folders_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    for at in ("a", "b"):
        OnnxEmbedder(write_folder(tmp_path / at / "tiny", random_encoder(4)), RECIPE, keep=tmp_path / "kept")
    assert len(os.listdir(tmp_path / "kept")) == 2


def test_weights_in_fp32_are_not_kept(tmp_path: Path) -> None:
    OnnxEmbedder(write_folder(tmp_path / "tiny", random_encoder(4)), RECIPE, exact=True, keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_place_that_cannot_be_written_to_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file, no folder")
    folder = write_folder(tmp_path / "tiny", random_encoder(4))
    assert len(OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept").embed(TEXTS, role="chunk")) == len(TEXTS)


def test_a_damaged_tokenizer_is_told_where_things_are_kept_too(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", random_encoder(4))
    for text in ("{", json.dumps({"model": {"type": "BPE"}})):
        (folder / "tokenizer.json").write_text(text)
        with pytest.raises(ModelUnavailableError, match="tokenizer"):
            OnnxEmbedder(folder, RECIPE, keep=tmp_path / "kept")
