"""Changing the model: the old vectors serve until the new ones are complete."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import dowse
from dowse.errors import ModelMismatchError
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Matrix, Role

NOTES = 40  # more than a batch, so that an interruption falls in between


class Failing:
    """Embeds one batch and is then interrupted, as by ctrl-C."""

    def __init__(self, dimension: int) -> None:
        self._inner = HashEmbedder(dimension)
        self._calls = 0
        self.model, self.dimension = self._inner.model, self._inner.dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        self._calls += 1
        if self._calls > 1:
            raise KeyboardInterrupt
        return self._inner.embed(texts, role=role)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(NOTES):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nParcel {number} waits at depot {number}.\n")
    return folder


def test_old_vectors_serve_until_the_new_ones_are_complete(notes: Path, index_folder: Path) -> None:
    with dowse.open(index_folder, embedder=HashEmbedder(32)) as engine:
        engine.index([notes])
        before = engine.query("parcel at depot 7")
        with pytest.raises(KeyboardInterrupt):
            engine.reembed(Failing(64))

    with dowse.open(index_folder, embedder=HashEmbedder(32)) as engine:
        assert (engine.status().dimension, engine.status().pending) == (32, 0)
        again = engine.query("parcel at depot 7")
        assert [chunk.dense_score for chunk in again.chunks] == [chunk.dense_score for chunk in before.chunks]
        report = engine.reembed(HashEmbedder(64))
        assert (0 < report.embedded < NOTES, report.pending) == (True, 0)  # what was done before is kept
        assert (engine.status().dimension, engine.status().vectors) == (64, NOTES)
        after = engine.query("parcel at depot 7")
        assert not after.degraded
        assert {chunk.dense_score for chunk in after.chunks} != {chunk.dense_score for chunk in before.chunks}


def test_another_model_without_reembed_is_an_error_with_the_command(notes: Path, index_folder: Path) -> None:
    with dowse.open(index_folder, embedder=HashEmbedder(32)) as engine:
        engine.index([notes])
    with (
        dowse.open(index_folder, embedder=HashEmbedder(64)) as engine,
        pytest.raises(ModelMismatchError, match="reembed"),
    ):
        engine.query("parcel")


def test_a_renamed_file_embeds_nothing(notes: Path, index_folder: Path) -> None:
    with dowse.open(index_folder, embedder=HashEmbedder(32)) as engine:
        engine.index([notes])
        (notes / "3.md").rename(notes / "moved.md")
        report = engine.index([notes])
        assert (report.added, report.removed, report.embedded, report.pending) == (1, 1, 0, 0)
        assert engine.query("parcel 3 depot 3").chunks[0].file_path == "moved.md"
