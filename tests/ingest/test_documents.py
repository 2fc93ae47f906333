"""Documents without files: added by id, replaced, masked, linked, found and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.main import cli
from dowse.engine import Engine
from dowse.errors import NotFoundError

TICKET = {
    "id": "T-1", "title": "Login fails", "text": "Users cannot sign in after the rollout.", "author": "Ada Byron",
    "url": "https://tracker.example.com/T-1", "created_at": "2026-01-02T03:04:05Z", "corpus_type": "CONVO_OTHER",
    "metadata": {"team": "core", "votes": 3, "open": True}, "parent": "EPIC-1",
}  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with dowse.open(tmp_path / ".dowse", embedder="hash") as engine:
        yield engine


def test_a_document_is_found_with_the_fields_it_was_given(engine: Engine) -> None:
    report = engine.add([TICKET])
    assert (report.added, report.chunks, report.embedded, report.pending) == (1, 1, 1, 0)
    hit = engine.query("login fails").chunks[0]
    assert (hit.source_uri, hit.document_title, hit.author) == ("documents/T-1", "Login fails", "Ada Byron")
    assert hit.corpus_type == "CONVO_OTHER"
    assert dict(hit.meta) == {
        "team": "core", "votes": "3", "open": "true", "url": TICKET["url"], "parent": "EPIC-1",
    }  # fmt: skip
    assert hit.stale is None


def test_the_same_content_is_unchanged_and_other_content_replaces_it(engine: Engine) -> None:
    engine.add([TICKET])
    assert engine.add([TICKET]).unchanged == 1
    report = engine.add([TICKET | {"text": "Fixed by a restart."}])
    assert (report.added, report.changed) == (0, 1)
    assert [hit.text for hit in engine.query("login").chunks] == ["Fixed by a restart."]


def test_changed_metadata_alone_replaces_the_document(engine: Engine) -> None:
    engine.add([TICKET])
    assert engine.add([TICKET | {"metadata": {"team": "web"}}]).changed == 1
    assert engine.query("login", meta_filter=(("team", "web"),)).chunks


def test_a_bad_document_is_a_problem_and_the_others_are_added(engine: Engine) -> None:
    rows = [{"id": ""}, {"id": "a", "text": "x", "colour": 1}, {"id": "b"}, {"id": "c", "text": "\ud800"}, TICKET]
    report = engine.add(rows)
    assert report.added == 1
    assert [each.path for each in report.problems] == ["document 1", "a", "b", "c"]


def test_secrets_are_masked_in_text_title_and_metadata(engine: Engine) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    engine.add([{"id": "s", "text": f"use {key} now", "title": f"key {key}", "metadata": {"note": key}}])
    assert all(key not in str(chunk) for chunk in engine.show("s"))


def test_a_media_type_chooses_the_reader(engine: Engine) -> None:
    engine.add([{"id": "page", "data": b"<h1>Refunds</h1><p>Paid within a week.</p>", "media_type": "text/html"}])
    assert "<p>" not in engine.query("refunds").chunks[0].text
    engine.add([{"id": "retry.py", "text": "def backoff(n):\n    return 2 ** n\n"}])
    assert engine.symbols("backoff")[0].chunk.source_uri == "documents/retry.py"


def test_an_index_run_keeps_added_documents(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Notes\nabout retries")
    engine.add([TICKET])
    engine.index([folder])
    assert engine.index().removed == 0
    assert {each.name: each.missing for each in engine.status().sources} == {"documents": 0, "notes": 0}


def test_an_id_removes_one_document_and_not_those_below_it(engine: Engine) -> None:
    engine.add([{"id": "a", "text": "first"}, {"id": "a/b", "text": "second"}])
    assert engine.remove(["a"]) == 1
    assert [hit.text for hit in engine.query("second").chunks] == ["second"]
    assert engine.remove(["missing"], missing_ok=True) == 0
    with pytest.raises(NotFoundError):
        engine.remove(["missing"])


def test_documents_are_durable_when_add_returns(tmp_path: Path) -> None:
    with dowse.open(tmp_path / ".dowse", embedder="none") as engine:
        engine.add([TICKET])
        with dowse.open(tmp_path / ".dowse", read_only=True, embedder="none") as other:
            assert other.query("login").chunks


def test_a_folder_keeps_its_name(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\ntext")
    engine.index([tmp_path / "notes"])
    report = engine.add([TICKET | {"source": "notes"}])
    assert "choose another name" in report.problems[0].reason


def test_2000_small_documents_take_less_than_a_cpu_second(tmp_path: Path) -> None:
    rows = [{"id": f"T-{n}", "title": f"Ticket {n}", "text": f"Login of user {n} fails."} for n in range(2000)]
    with dowse.open(tmp_path / ".dowse", embedder="none") as engine:
        engine.add(rows[:10])
        started = process_time()
        engine.add(rows)
        assert process_time() - started < 2  # twice the bar, for a busy machine


def test_the_command_reads_lines_and_reports_bad_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "\n".join([json.dumps(TICKET), "", "{not json}"])
    found = CliRunner().invoke(cli, ["add", "--no-embed", "--index", str(tmp_path / ".dowse")], input=lines)
    assert (found.exit_code, "Added 1 document" in found.stdout) == (4, True)
    assert "document 2: invalid document" in found.stderr
