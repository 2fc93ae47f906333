"""`dowse judge` at a terminal and `dowse search --trec` in a pipe: the commands as typed, in their own process."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from beir_folders import GARDEN
from dowse.evaluate.judgments import query_id

SRC = Path(__file__).parents[2] / "src"
PROMPT = "Relevant? y, n or 0-3"
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Shell:
    """A folder with an index, and dowse in it."""

    cwd: Path
    env: dict[str, str]

    def run(self, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dowse", *args]
        return subprocess.run(command, cwd=self.cwd, env=self.env, input=given, capture_output=True, text=True)

    def json(self, *args: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.run(*args, "--json").stdout)
        return found


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    cwd = tmp_path_factory.mktemp("garden")
    for name, (title, text) in GARDEN.items():
        (cwd / f"{name}.txt").write_text(f"{title}\n\n{text}\n")
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env = kept | {"PYTHONPATH": str(SRC), "HOME": str(cwd), "DOWSE_CONFIG": os.devnull, "TERM": "dumb"}
    env |= {"DOWSE_INDEX": str(cwd / "index"), "COLUMNS": "80"}
    found = Shell(cwd, env)
    indexed = found.run("index", ".", "--embedder", "hash:64", "-q")
    assert indexed.returncode == 0, indexed.stderr
    return found


class Terminal:
    """A process whose input and output are a terminal."""

    def __init__(self, shell: Shell, *args: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dowse", *args], cwd=shell.cwd, env=shell.env,
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._shown = ""

    def until(self, text: str) -> str:
        """What is shown up to this text and with it; an end before is a failure."""
        deadline_s = time.monotonic() + PATIENCE_S
        while text not in self._shown:
            assert time.monotonic() < deadline_s, f"waited for {text!r} in vain: {self._shown!r}"
            self._shown += os.read(self._ours, 4096).decode()
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C, pressed again where one was lost: CPython does not see a signal that falls between its last look and
        the wait for a key, and waits on.
        """
        for _ in range(int(PATIENCE_S)):
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(1.0)
                return

    def close(self) -> int:
        code = self.process.wait(PATIENCE_S)
        os.close(self._ours)
        return code


@pytest.fixture
def judging(shell: Shell) -> Iterator[Terminal]:
    shell.run("judge", "lettuce at night", "--forget")
    terminal = Terminal(shell, "judge", "lettuce at night", "-k", "4")
    yield terminal
    if terminal.process.poll() is None:
        terminal.process.kill()
        terminal.process.wait()


def test_a_person_judges_hit_after_hit_and_what_was_said_is_kept(shell: Shell, judging: Terminal) -> None:
    first = judging.until(PROMPT)
    assert "1. " in first
    assert "Slugs eat young lettuce at night" in first
    judging.type("2\n")
    assert "2. " in judging.until(PROMPT)
    judging.type("maybe\n")  # not an answer: asked again
    judging.until(PROMPT)
    judging.type("n\n")
    assert "3. " in judging.until(PROMPT)
    judging.type("\n")  # skipped
    assert "4. " in judging.until(PROMPT)
    judging.type("q\n")
    judging.until("Stored 2 judgments. Measure: dowse eval --judged")
    assert judging.close() == 0
    listed = shell.json("judge", "--list")["judgments"]
    found = sorted((row["query"], row["grade"]) for row in listed)  # type: ignore[index,attr-defined]
    assert found == [("lettuce at night", 0.0), ("lettuce at night", 2.0)]


def test_an_interrupt_at_the_prompt_keeps_nothing_and_ends(shell: Shell, judging: Terminal) -> None:
    judging.until(PROMPT)
    judging.type("y\n")
    judging.until(PROMPT)
    judging.interrupt()
    assert judging.close() != 0
    assert shell.json("judge", "--list")["judgments"] == []


def test_a_trec_run_has_the_ids_that_qrels_have(shell: Shell) -> None:
    found = shell.run("search", "--trec", "-k", "2", "lettuce at night")
    rows = [line.split() for line in found.stdout.splitlines()]
    assert [(row[0], row[1], row[3], row[5]) for row in rows] == [
        (query_id("lettuce at night"), "Q0", "1", "dowse"), (query_id("lettuce at night"), "Q0", "2", "dowse"),
    ]  # fmt: skip
    assert float(rows[0][4]) >= float(rows[1][4])


def test_queries_with_ids_keep_them_in_a_trec_run(shell: Shell) -> None:
    found = shell.run("search", "--trec", "-k", "1", "-", given="q7\tprune apple trees\nfrost\n")
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["q7", query_id("frost")]


def test_an_exported_query_file_makes_a_run_that_agrees_with_the_exported_qrels(shell: Shell) -> None:
    (hit,) = shell.json("search", "prune apple trees", "-k", "1")["chunks"]  # type: ignore[misc]
    shell.run("judge", "prune apple trees", "--grade", f"{hit['id']}=1")  # type: ignore[index]
    shell.run("judge", "--export", "ours.qrels")
    ran = shell.run("search", "--trec", "-", given=(shell.cwd / "ours.qrels.queries").read_text())
    relevant = {tuple(line.split()[::2]) for line in (shell.cwd / "ours.qrels").read_text().splitlines()}
    found = {(row[0], row[2]) for row in map(str.split, ran.stdout.splitlines())}
    assert {pair[:2] for pair in relevant} <= found


@pytest.mark.parametrize("embedder", ["auto", "hash-64"])
def test_an_index_is_measured_with_the_model_it_was_made_with(shell: Shell, embedder: str) -> None:
    """`hash:64` is what was typed, `hash-64` is what the index calls it; neither has to be typed again."""
    (shell.cwd / "judgments.tsv").write_text("what eats lettuce\tslug.txt\t1\n")
    found = shell.run("eval", "judgments.tsv", "--embedder", embedder, "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["mean"]["ndcg@10"] == 1
