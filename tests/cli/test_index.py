"""The command line on a real index, with the hashing embedder for vectors."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.main import cli
from dowse.models.embed_hash import HashEmbedder

ESCAPE = "\x1b"
PAY = '''"""Charging cards."""


def retry_payment(order):
    """Try the charge again, with a pause that doubles."""
    for attempt in range(5):
        if charge(order):
            return attempt
    raise PaymentRefusedError(order)
'''
RUNBOOK = """---
author: Ada Quill
date: 2026-02-03
team: platform
---
# Rollback

## When the deploy is bad

Run `shipctl rollback --to previous` and watch the error rate fall.
"""


def _write_project(root: Path) -> Path:
    (root / "docs" / "runbooks").mkdir(parents=True)
    (root / "pay.py").write_text(PAY)
    (root / "docs" / "runbooks" / "rollback.md").write_text(RUNBOOK)
    (root / "docs" / "evil.md").write_text("A zebra \x1b[31mred\x1b]0;owned\x07 \x1b[2Jscreen.\n")
    return root


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that holds no setting of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("DOWSE_") or name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DOWSE_CONFIG", os.devnull)
    monkeypatch.setenv("DOWSE_EMBEDDER", "hash")
    monkeypatch.setenv("DOWSE_MODELS", str(tmp_path / "models"))


@pytest.fixture
def project(tmp_path: Path, nobody: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project without an index."""
    root = _write_project(tmp_path / "shop")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def fresh(project: Path) -> Path:
    """A small project with an index of its own, to be changed."""
    assert _run("index", ".")[0] == 0
    return project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = _write_project(tmp_path_factory.mktemp("built") / "shop")
    with dowse.open(root / ".dowse", embedder="hash") as engine:
        engine.index([root])
    return root


@pytest.fixture
def indexed(built: Path, nobody: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project with an index that tests only look at."""
    monkeypatch.chdir(built)
    return built


def _run(*args: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, list(args), input=stdin, prog_name="dowse")
    assert "Traceback" not in result.stderr, result.stderr
    return result.exit_code, result.stdout, result.stderr


def _popen(*args: str, **options: object) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1])}
    return subprocess.Popen([sys.executable, "-m", "dowse.cli.main", *args], env=env, **options)  # type: ignore[call-overload,no-any-return]


# --- index ------------------------------------------------------------------------------------------


def test_index_summarises_and_names_the_next_command(project: Path) -> None:
    code, out, err = _run("index", ".")
    assert code == 0
    assert re.match(
        r"Indexed 3 files \(\d chunks\) in \d+\.\d s: 3 new, 0 changed, 0 removed\.\nEmbedded \d chunks\.\n", out
    )
    assert err == 'Try: dowse "where do we retry payments"\n'
    assert (project / ".dowse").is_dir()
    assert (project / ".dowse" / ".gitignore").is_file()


def test_the_second_run_reads_only_what_changed(fresh: Path) -> None:
    (fresh / "pay.py").write_text(PAY + "\n\ndef refund():\n    pass\n")
    (fresh / "docs" / "evil.md").unlink()
    _, out, _ = _run("index", ".")
    assert out.splitlines()[0].endswith(": 0 new, 1 changed, 1 removed, 1 unchanged.")


def test_index_without_a_path_refreshes_what_is_known(fresh: Path) -> None:
    (fresh / "new.md").write_text("# New\n\nA walrus.\n")
    code, out, _ = _run("index")
    assert code == 0
    assert out.splitlines()[0].endswith(": 1 new, 0 changed, 0 removed, 3 unchanged.")


def test_index_json_is_the_report(project: Path) -> None:
    (project / "logo.png").write_bytes(b"\x89PNG\0\0")
    code, out, _ = _run("index", ".", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["added"], report["problems"], report["pending"]) == (3, [], 0)
    assert report["embedded"] == report["chunks"] > 0
    assert sum(report["skipped"].values()) >= 1
    assert report["index"] == str(project / ".dowse")


def test_a_bad_file_is_named_in_one_line_and_the_run_is_partial(project: Path) -> None:
    (project / "a\nb.md").write_bytes(b"bad \xff\xfe bytes")
    code, out, err = _run("index", ".", "-q")
    assert code == 4
    assert out.startswith("Indexed 3 files ")
    assert [line for line in err.splitlines() if "a\\nb.md" in line]
    assert "Try:" not in err


def test_no_embed_leaves_vectors_for_later(project: Path) -> None:
    _, _, err = _run("index", ".", "--no-embed")
    assert "without a vector; compute them with: dowse index" in err
    assert json.loads(_run("status", "--json")[1])["pending"] > 0
    _run("index")
    assert json.loads(_run("status", "--json")[1])["pending"] == 0


def test_large_files_are_skipped_at_the_size_that_is_typed(project: Path) -> None:
    report = json.loads(_run("index", ".", "--json", "--max-file-size", "0.1KB")[1])
    assert report["added"] == 3 - 2  # two are above 0.1 · 1,024 bytes
    assert _run("index", ".", "--max-file-size", "huge")[0] == 2


def test_the_index_goes_where_it_is_told(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "elsewhere"
    assert _run("index", ".", "--index", str(place))[0] == 0
    assert not (project / ".dowse").exists()
    assert _run("status")[0] == 3
    assert _run("--index", str(place), "status")[0] == 0
    monkeypatch.setenv("DOWSE_INDEX", str(place))
    assert _run("status")[0] == 0


def test_why_skipped_names_every_file_and_its_reason(project: Path) -> None:
    (project / "logo.png").write_bytes(b"\x89PNG")
    (project / "node_modules").mkdir()
    code, out, _ = _run("index", "--no-embed", "--why-skipped", ".")
    assert code == 0
    listed = out.splitlines()[-2:]
    assert [line.removeprefix(f"{project}/") for line in sorted(listed)] == [
        "logo.png: binary",
        "node_modules: vendored",
    ]
    report = json.loads(_run("index", "--no-embed", "--why-skipped", "--json", ".")[1])
    assert {each["reason"] for each in report["left_out"]} >= {"binary", "vendored"}


def test_an_archive_and_a_glob_are_indexed_and_shown(project: Path) -> None:
    with zipfile.ZipFile(project / "old.zip", "w") as archive:
        archive.writestr("notes/plan.md", "# Plan\n\nMigrate the walrus ledger.\n")
    code, out, _ = _run("index", "--no-embed", "old.zip", "docs/**/*.md")
    assert (code, out.split(",")[0].split(": ")[1]) == (0, "3 new")
    assert "old.zip!/notes/plan.md" in _run("search", "walrus ledger")[1]
    code, out, _ = _run("index", "--no-embed")
    assert (code, out.split(": ")[1]) == (0, "0 new, 0 changed, 0 removed, 3 unchanged.\n")


def test_a_revision_is_searched_beside_what_is_checked_out(project: Path) -> None:
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"], ["tag", "v1"]):
        subprocess.run([*git, *arguments], cwd=project, check=True, capture_output=True)
    code, _, err = _run("index", "--no-embed", "--rev", "v1", ".")
    assert code == 0, err
    assert "@v1" in _run("status")[1]
    assert json.loads(_run("search", "--json", "retry_payment")[1])["chunks"][0]["author"] == "Ada"
    code, _, err = _run("index", "--rev", "v9", ".")
    assert code == 2
    assert "no revision 'v9'" in err


def test_kinds_of_ones_own_come_from_the_projects_file(project: Path) -> None:
    (project / "dowse.toml").write_text('[[kinds]]\nmatch = "*.zzz"\nreader = "markdown"\ncorpus_type = "DOC_ADR"\n')
    (project / "one.zzz").write_text("# Zebra decision\n\nStripes stay.\n")
    assert _run("index", "--no-embed", ".")[0] == 0
    hit = json.loads(_run("search", "--json", "zebra decision stripes")[1])["chunks"][0]
    assert (hit["file_path"], hit["corpus_type"]) == ("one.zzz", "DOC_ADR")
    (project / "dowse.toml").write_text('[[kinds]]\nmatch = "*.zzz"\nreader = "markdwn"\n')
    code, _, err = _run("index", ".")
    assert code == 2
    assert "[[kinds]] number 1: unknown reader 'markdwn'; did you mean 'markdown'?" in err


def test_status_shows_the_share_that_is_embedded(fresh: Path) -> None:
    (fresh / "late.txt").write_text("late words\n")
    _run("index", "--no-embed", ".")
    found = json.loads(_run("status", "--json")[1])["sources"][0]
    assert found["embedded"] == found["chunks"] - 1
    assert "embedded" in _run("status")[1]


def test_watch_follows_changes_until_ctrl_c(project: Path) -> None:
    process = _popen("index", "--no-embed", "--watch", ".", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    try:
        while not process.stdout.readline().startswith(b"Skipped"):
            assert process.poll() is None
        (project / "new.txt").write_text("a quokka appears\n")
        assert process.stdout.readline().startswith(b"Indexed 1 file ")
        assert "new.txt" in _run("search", "quokka")[1]
        (project / "new.txt").unlink()
        assert b" 1 removed" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert b"stopped watching; the index keeps all finished changes" in err


def test_watch_goes_with_neither_a_revision_nor_json(project: Path) -> None:
    assert _run("index", "--watch", "--json", ".")[0] == 2
    assert _run("index", "--watch", "--rev", "main", ".")[0] == 2


def test_a_path_that_is_not_there_is_an_error(project: Path) -> None:
    code, _, err = _run("index", "nowhere")
    assert code != 0
    assert "nowhere" in err


# --- search -----------------------------------------------------------------------------------------


def test_piped_hits_are_one_a_line(indexed: Path) -> None:
    code, out, _ = _run("search", "retry_payment")
    assert code == 0
    assert out.splitlines()[0] == "pay.py:4:5:def retry_payment(order):"
    _, scored, _ = _run("search", "--scores", "retry_payment")
    assert re.match(r"pay\.py:4:5:0\.\d\d:def retry_payment", scored.splitlines()[0])
    assert all(re.match(r"[^:]+:\d+:\d+:", line) for line in out.splitlines())


def test_a_bare_query_is_a_search(indexed: Path) -> None:
    assert _run("retry_payment") == _run("search", "retry_payment")
    assert _run("retry", "payment", "-k", "1") == _run("search", "-k", "1", "retry", "payment")
    assert _run("-k", "1", "retry")[1] == _run("search", "-k", "1", "retry")[1]


def test_json_is_one_result(indexed: Path) -> None:
    code, out, _ = _run("search", "--json", "-k", "2", "rollback the deploy")
    result = json.loads(out)
    assert code == 0
    assert result["chunks"][0]["file_path"] == "docs/runbooks/rollback.md"
    assert len(result["chunks"]) == 2
    assert [score["stage"] for score in result["chunks"][0]["scores"]][-1]
    assert _run("--json", "rollback")[0] == 0


def test_jsonl_is_one_hit_a_line(indexed: Path) -> None:
    rows = [json.loads(line) for line in _run("search", "--jsonl", "rollback")[1].splitlines()]
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["query"] for row in rows} == {"rollback"}


def test_queries_come_from_stdin_one_a_line(indexed: Path) -> None:
    code, out, _ = _run("search", "--jsonl", "-k", "1", "-", stdin="rollback\n\nretry_payment\n")
    assert code == 0
    assert [json.loads(line)["query"] for line in out.splitlines()] == ["rollback", "retry_payment"]
    assert _run("search", "--jsonl", "-k", "1", stdin="rollback\n")[1] == out.splitlines()[0] + "\n"
    assert _run("search", stdin=b"\xff rollback\n")[0] == 0


def test_an_unknown_language_is_noted_with_the_near_one(indexed: Path) -> None:
    code, out, err = _run("search", "--lang", "pyton", "retry")
    assert (code, out) == (1, "")
    assert "did you mean 'python'?" in err
    assert "no results" in err
    assert _run("search", "lang:pyton retry")[2] == err


def test_nothing_found_is_exit_code_1(indexed: Path) -> None:
    assert _run("search", "--set", "legs=bm25_code,bm25_nlp", "xylophone") == (1, "", "dowse: no results\n")


def test_a_mistyped_command_that_finds_nothing_gets_advice(indexed: Path) -> None:
    code, _, err = _run("stauts", "--set", "legs=bm25_code,bm25_nlp")
    assert code == 1
    assert "did you mean: dowse status" in err


@pytest.mark.parametrize(
    "args",
    [[""], ["  "], ["-k", "0", "x"], ["--set", "alpha=2", "x"], ["--corpus", "POEMS", "x"], ["--profile", "no", "x"],
     ["--set", "weights=dense=1", "--set", "alpha=0.5", "x"], ["--set", "deadline_s=0", "x"], ["--path", "", "x"]],
)  # fmt: skip
def test_a_wrong_request_is_exit_code_2(indexed: Path, args: list[str]) -> None:
    code, out, err = _run("search", *args)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--corpus", "CODE"], {"pay.py"}),
        (["--corpus", "DOC_RUNBOOK"], {"docs/runbooks/rollback.md"}),
        (["--lang", "python"], {"pay.py"}),
        (["-t", "Python"], {"pay.py"}),
        (["--path", "docs/**"], {"docs/runbooks/rollback.md", "docs/evil.md"}),
        (["-g", "*.py", "-g", "evil.md"], {"pay.py", "docs/evil.md"}),
        (["--author", "Ada Quill"], {"docs/runbooks/rollback.md"}),
        (["--set", "meta_filter=team=platform"], {"docs/runbooks/rollback.md"}),
        (["--since", "2026-02-03"], {"docs/runbooks/rollback.md"}),
        (["--until", "2026-02-03"], {"docs/runbooks/rollback.md"}),
        (["--since", "2026-02-04"], set()),
        (["--until", "2026-02-02"], set()),
        (["--repo", "shop"], {"pay.py", "docs/runbooks/rollback.md", "docs/evil.md"}),
        (["--source", "shop' OR 1=1"], set()),
        (["--repo", "*"], set()),
    ],
)
def test_filters_choose_exactly(indexed: Path, flags: list[str], expected: set[str]) -> None:
    _, out, _ = _run("search", "-l", *flags, "the error rate of a charge")
    assert set(out.splitlines()) == expected


def test_files_are_each_named_once_and_nul_separated(indexed: Path) -> None:
    _, lines, _ = _run("search", "-l", "rollback")
    _, nul, _ = _run("search", "-l", "-0", "rollback")
    assert nul.split("\0")[:-1] == lines.splitlines()
    assert len(set(lines.splitlines())) == len(lines.splitlines())


def test_explain_shows_every_stage_of_a_hit(indexed: Path) -> None:
    _, out, _ = _run("search", "--explain", "-k", "1", "retry_payment")
    stages = [line.split()[0] for line in out.splitlines()[1:]]
    assert stages[0] == "stage"
    assert {"dense", "bm25_code", "bm25_nlp"} <= set(stages)


@pytest.mark.parametrize("fusion", ["z", "rrf", "minmax"])
def test_fusions_can_be_chosen(indexed: Path, fusion: str) -> None:
    result = json.loads(_run("search", "--json", "--set", f"fusion={fusion}", "retry_payment")[1])
    assert result["query_metadata"]["fusion"] == fusion
    assert result["chunks"][0]["file_path"] == "pay.py"


def test_settings_hold_where_no_flag_is_typed(fresh: Path) -> None:
    (fresh / "dowse.toml").write_text("top_k = 1\n")
    assert len(_run("search", "rollback")[1].splitlines()) == 1
    assert len(_run("search", "-k", "2", "rollback")[1].splitlines()) == 2


def test_words_alone_are_told_on_stderr_only(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_EMBEDDER", "none")
    code, out, err = _run("search", "retry_payment")
    assert code == 0
    assert "dense" in err
    assert out.startswith("pay.py:")
    assert _run("search", "-q", "retry_payment") == (0, out, "")


def test_escapes_in_indexed_text_never_reach_the_terminal(indexed: Path) -> None:
    for args in (["search", "zebra"], ["show", "docs/evil.md"]):
        _, out, err = _run(*args)
        assert ESCAPE not in out + err
        assert "\x07" not in out + err
        assert "red" in out


# --- looking and changing ---------------------------------------------------------------------------


def test_show_prints_a_chunk_a_file_or_lines_of_it(indexed: Path) -> None:
    assert "     4  def retry_payment(order):" in _run("show", "pay.py")[1]
    assert _run("show", "pay.py:5-6")[1].splitlines() == [
        '     5      """Try the charge again, with a pause that doubles."""',
        "     6      for attempt in range(5):",
    ]
    chunk = json.loads(_run("show", "pay.py:4", "--json")[1])["chunks"][0]
    assert "retry_payment" in chunk["text"]
    assert _run("show", chunk["id"])[0] == 0
    assert _run("show", "nowhere.py")[0] == 1


def test_status_counts_documents_and_stale_files(fresh: Path) -> None:
    (fresh / "pay.py").write_text(PAY + "# changed\n")
    status = json.loads(_run("status", "--json")[1])
    assert (status["documents"], status["pending"], status["dimension"]) == (3, 0, status["dimension"])
    assert [(source["name"], source["stale"], source["missing"]) for source in status["sources"]] == [("shop", 1, 0)]
    code, out, _ = _run("status")
    assert code == 0
    assert re.search(r"documents +3\n", out)


def test_a_sound_index_passes_the_doctor(indexed: Path) -> None:
    code, out, _ = _run("doctor", "--verify", "--json")
    report = json.loads(out)
    assert code == 0, out
    assert report["ok"] is True
    assert {check["state"] for check in report["checks"]} <= {"ok", "warn"}
    assert _run("doctor")[1].startswith("ok")


def test_an_index_that_cannot_be_opened_fails_the_doctor(fresh: Path) -> None:
    database = next(file for file in (fresh / ".dowse").iterdir() if file.suffix in (".db", ".sqlite", ".sqlite3"))
    for extra in (fresh / ".dowse").glob(f"{database.name}-*"):
        extra.unlink()
    database.write_bytes(b"this is no database, and long enough to be sure of it" * 100)
    assert _run("doctor")[0] == 1
    assert _run("search", "x")[0] == 3


def test_removed_documents_are_found_no_more(fresh: Path) -> None:
    assert _run("remove", "pay.py")[:2] == (0, "Removed 1 document.\n")
    assert "pay.py" not in _run("search", "-l", "retry_payment")[1]
    assert _run("remove", "pay.py")[0] == 1
    assert json.loads(_run("remove", "docs/**", "--json")[1]) == {"removed": 2}


def test_rebuild_changes_no_answer(fresh: Path) -> None:
    before = _run("search", "retry_payment")
    assert json.loads(_run("rebuild", "--json")[1]) == {"rebuilt": str(fresh / ".dowse")}
    assert _run("rebuild")[0] == 0
    assert _run("search", "retry_payment") == before


def test_reembed_changes_the_model(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads(_run("reembed", "hash:64", "--json")[1])
    assert (report["embedded"] > 0, report["pending"]) == (True, 0)
    monkeypatch.setenv("DOWSE_EMBEDDER", "hash:64")
    assert json.loads(_run("status", "--json")[1])["dimension"] == 64
    assert _run("search", "retry_payment")[::2] == (0, "")
    assert _run("reembed", "no-such-model")[0] != 0


# --- processes --------------------------------------------------------------------------------------


def test_a_closed_pipe_is_quiet(indexed: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = _popen("search", "--jsonl", "retry", stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


def test_ctrl_c_says_how_to_go_on(indexed: Path) -> None:
    process = _popen("search", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"retry_payment\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"pay.py:")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err


def _on_terminal(*args: str) -> tuple[int, str]:
    """What a person sees on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    process = _popen(*args, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    seen = io.BytesIO()
    while select.select([ours], [], [], 60)[0]:
        try:
            data = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen.write(data)
    os.close(ours)
    return process.wait(timeout=60), seen.getvalue().decode().replace("\r\n", "\n")


def test_a_terminal_gets_groups_colours_and_links(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    code, seen = _on_terminal("search", "-k", "2", "retry_payment")
    assert code == 0
    assert f"{ESCAPE}]8;" in seen
    assert (indexed / "pay.py").as_uri() in seen
    assert f"{ESCAPE}[1;31mretry_payment{ESCAPE}[0m" in seen


@pytest.mark.parametrize("how", ["variable", "flag"])
def test_no_color_means_no_escape_at_all(indexed: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    if how == "variable":
        monkeypatch.setenv("NO_COLOR", "1")
    _, seen = _on_terminal("search", "-k", "2", "retry_payment", *(["--no-color"] if how == "flag" else []))
    assert ESCAPE not in seen
    assert seen.startswith("pay.py\n")


def test_forced_colours_reach_a_pipe(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPE in _run("search", "retry_payment")[1]


# --- a model behind an address ----------------------------------------------------------------------


class _Answers(BaseHTTPRequestHandler):
    """An embedding server that hashes, until it is told to refuse."""

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = HashEmbedder(16).embed(texts, role="chunk").tolist()
        body = json.dumps({"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]}).encode()
        self.send_response(404 if self.server.refuses else 200)  # type: ignore[attr-defined]
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: stderr is what the tests look at."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, nobody: None) -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), _Answers) as http:
        http.refuses = False  # type: ignore[attr-defined]
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("DOWSE_EMBEDDER", f"http://127.0.0.1:{http.server_port}/v1#tiny")
        yield http
        http.shutdown()
        thread.join()


def test_when_a_remote_model_fails_there_are_results_and_exit_code_5(project: Path, server: HTTPServer) -> None:
    assert _run("index", ".")[0] == 0
    code, _, err = _run("search", "retry_payment")
    assert (code, err) == (0, "")
    server.refuses = True  # type: ignore[attr-defined]
    code, out, err = _run("search", "retry_payment")
    assert code == 5
    assert out.startswith("pay.py:")
    assert "dense" in err
    assert _run("search", "--set", "legs=bm25_code", "retry_payment")[0] == 0


def test_when_a_remote_model_fails_words_are_indexed_and_the_exit_code_is_5(project: Path, server: HTTPServer) -> None:
    server.refuses = True  # type: ignore[attr-defined]
    code, out, err = _run("index", ".")
    assert code == 5
    assert out.startswith("Indexed 3 files ")
    assert "without a vector" in err


def test_a_wrong_path_leaves_no_empty_index_behind(project: Path) -> None:
    _, _, said = _run("index", "typo")
    assert "no such file or folder: typo" in said
    assert not (project / ".dowse").exists()


def test_without_a_model_the_note_names_a_command_that_turns_one_on(project: Path) -> None:
    _, _, said = _run("index", "--embedder", "none", ".")
    assert "compute them with: dowse index --embedder auto" in said


def test_a_model_typed_for_the_project_needs_no_trust(project: Path) -> None:
    assert _run("config", "set", "--project", "reranker", "org/model")[0] == 0
    assert _run("config", "get", "reranker")[1].strip() == "org/model"
    assert _run("config", "unset", "--project", "reranker")[0] == 0
