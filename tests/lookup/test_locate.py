"""Places a user may name, and the documents behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dowse
from dowse.engine import Engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    tree = tmp_path / "tree"
    (tree / "pages").mkdir(parents=True)
    (tree / "pages" / "[id].ts").write_text("export const one = 1\n")
    (tree / "pages" / "i.ts").write_text("export const two = 2\n")
    with dowse.open(tmp_path / "index", embedder=None) as opened:
        opened.index([tree])
        yield opened


def test_a_file_that_is_named_like_a_glob_is_that_file(engine: Engine) -> None:
    assert [info.path for info in engine.documents("tree/pages/[id].ts")] == ["pages/[id].ts"]
    assert [chunk.text.strip() for chunk in engine.show("tree/pages/[id].ts")] == ["export const one = 1"]
    assert [each.path for each in engine.outline("tree/pages/[id].ts")] == ["pages/[id].ts"]


def test_a_glob_that_is_no_file_matches_as_a_glob(engine: Engine) -> None:
    assert [info.path for info in engine.documents("tree/pages/[hij].ts")] == ["pages/i.ts"]
    assert {info.path for info in engine.documents("*.ts")} == {"pages/[id].ts", "pages/i.ts"}
