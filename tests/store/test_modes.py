"""Modes of an index: for its user alone, or for the group that its folder is open to."""

import os
from pathlib import Path

import pytest

import dowse


@pytest.mark.parametrize(("folder_mode", "file_mode"), [(None, 0o600), (0o770, 0o660)])
def test_files_of_an_index_are_as_private_as_its_folder(
    tmp_path: Path, folder_mode: int | None, file_mode: int
) -> None:
    place = tmp_path / "deep" / ".dowse"
    (tmp_path / "a.md").write_text("# Alpha\n\nText.\n")
    before = os.umask(0o002)
    try:
        if folder_mode is not None:
            place.mkdir(parents=True)
            place.chmod(folder_mode)
        with dowse.open(place, embedder="hash") as engine:
            engine.index([tmp_path / "a.md"])
            engine.rebuild()
            engine.query("alpha")
            found = {path: path.stat().st_mode & 0o777 for path in place.rglob("*")}
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == (folder_mode or 0o700)
    assert {mode for path, mode in found.items() if path.is_file()} == {file_mode}
    assert {mode for path, mode in found.items() if path.is_dir()} == {folder_mode or 0o700}
