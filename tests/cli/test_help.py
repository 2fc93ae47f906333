"""The parts of the command line that need no index."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.find.search import search
from dowse.cli.help import FLAGS, page
from dowse.cli.main import COMMANDS, cli
from dowse.serve.wire import flags as cli_search_flags
from dowse.types import QueryRequest

NAMES = [name for name, _, _ in COMMANDS]


def _run(*args: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    result = CliRunner(env=env).invoke(cli, list(args), prog_name="dowse")
    return result.exit_code, result.stdout, result.stderr


def _command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def test_the_first_page_tells_the_flags_as_click_knows_them() -> None:
    context = cli.make_context("dowse", ["--index", "."], resilient_parsing=True)
    records = [param.get_help_record(context) for param in cli.get_params(context)]
    assert list(FLAGS) == [each for each in records if each is not None]


def test_the_first_page_fits_a_terminal_of_eighty_columns() -> None:
    assert max(map(len, page().splitlines())) <= 80


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_every_way_to_the_first_page_shows_the_same(arguments: list[str]) -> None:
    script = f"import sys\nsys.argv[1:] = {arguments}\nfrom dowse.__main__ import main\nmain()"
    env = os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == page() + "\n" == _run(*arguments)[1]


def test_a_reader_who_leaves_gets_no_traceback() -> None:
    """`dowse --help | head -0`"""
    env = os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1])}
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "dowse", "--help"]
    done = subprocess.run(command, env=env, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_commands_says_what_each_command_says(name: str) -> None:
    assert dict((name, summary) for name, _, summary in COMMANDS)[name] == _command(name).get_short_help_str(200)


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command_opens_with_three_examples(name: str) -> None:
    code, out, _ = _run(name, "--help")
    text = out.split("Options:")[0]
    assert code == 0
    assert text.count("dowse ") >= 3 + 1  # the usage line names it, too


@pytest.mark.parametrize("name", NAMES)
def test_every_command_can_print_json(name: str) -> None:
    command = _command(name)
    ctx = click.Context(command)
    names = command.list_commands(ctx) if isinstance(command, click.Group) else []
    below = [command.get_command(ctx, each) for each in names] if isinstance(command, click.Group) else [command]
    for each in below:
        assert each is not None
        assert "as_json" in {param.name for param in each.params}


def test_every_field_of_a_request_has_a_flag() -> None:
    flags = {param.name for param in search.params}
    wanted = {field.name for field in fields(QueryRequest)} - {"text", "where"}
    assert wanted <= flags
    assert len(cli_search_flags.REQUEST) == len(wanted)


def test_bare_dowse_prints_help() -> None:
    code, out, _ = _run()
    assert code == 0
    assert "dowse index ." in out
    assert "Commands:" in out


def test_version() -> None:
    assert _run("--version")[:2] == (0, f"dowse {dowse.__version__}\n")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without an index, and settings that are nobody's."""
    for name in list(os.environ):
        if name.startswith("DOWSE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DOWSE_CONFIG", os.devnull)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "args",
    [["search", "x"], ["x"], ["show", "x"], ["status"], ["remove", "x"], ["rebuild"], ["reembed", "hash"], ["index"]],
)
def test_without_an_index_a_command_says_how_to_make_one(empty: Path, args: list[str]) -> None:
    code, out, err = _run(*args)
    assert (code, out) == (3, "")
    assert "make one with: dowse index ." in err


def test_an_error_is_json_when_json_was_asked_for(empty: Path) -> None:
    for args in (["status", "--json"], ["--json", "status"]):
        code, out, _ = _run(*args)
        assert json.loads(out)["error"]["type"] == "NoIndexError"
        assert code == json.loads(out)["error"]["exit_code"] == 3


def test_a_mistyped_command_gets_advice_when_nothing_else_makes_sense(empty: Path) -> None:
    assert "did you mean: dowse status" in _run("stauts")[2]
    assert "did you mean" not in _run("payments")[2]


def test_a_wrong_flag_is_a_usage_error(empty: Path) -> None:
    assert _run("search", "--nonsense", "x")[0] == 2
    assert _run("search", "-k", "many", "x")[0] == 2
    assert _run("search", "--since", "yesterday", "x")[0] == 2
    assert _run("search", "-0", "x")[0] == 2


def test_a_broken_settings_file_is_a_usage_error(empty: Path) -> None:
    (empty / "dowse.toml").write_text("topk = 3")
    code, _, err = _run("status")
    assert code == 2
    assert "did you mean 'top_k'" in err


def test_a_bug_is_not_mistaken_for_an_empty_result(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_session: object) -> Path:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("dowse.cli.session.Session.existing_index", broken)
    code, _, err = _run("status")
    assert code == 70
    assert "ZeroDivisionError" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_dowse(shell: str, empty: Path) -> None:
    code, out, _ = _run("completion", shell)
    assert code == 0
    assert "_DOWSE_COMPLETE" in out
    assert json.loads(_run("completion", shell, "--json")[1])["script"].strip() == out.strip()


def test_completion_knows_commands_and_flags(empty: Path) -> None:
    from click.shell_completion import BashComplete

    complete = BashComplete(cli, {}, "dowse", "_DOWSE_COMPLETE")
    assert [item.value for item in complete.get_completions([], "re")] == ["related", "remove", "rebuild", "reembed"]
    assert "--fusion" in [item.value for item in complete.get_completions(["search"], "--f")]


def test_config_shows_values_and_where_they_come_from(empty: Path) -> None:
    (empty / "dowse.toml").write_text("top_k = 7\n")
    env = {"DOWSE_EMBEDDER": "none"}
    code, out, _ = _run("config", "show", "--origin", env=env)
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["top_k"] == ["7", str(empty / "dowse.toml")]
    assert rows["embedder"] == ["none", "DOWSE_EMBEDDER"]
    assert rows["profile"] == ["default", "default"]
    assert _run("config", "--origin", env=env)[1] == out
    assert json.loads(_run("config", "--json", env=env)[1])["top_k"] == {
        "value": "7",
        "origin": str(empty / "dowse.toml"),
    }


def test_config_get_set_and_path(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = empty / "user.toml"
    user.write_text("")
    monkeypatch.setenv("DOWSE_CONFIG", str(user))
    assert _run("config", "get", "top_k")[:2] == (1, "\n")
    assert _run("config", "set", "top_k", "12")[0] == 0
    assert _run("config", "get", "top_k")[:2] == (0, "12\n")
    assert _run("config", "set", "--project", "top_k", "13")[0] == 0
    assert json.loads(_run("config", "get", "top_k", "--json")[1])["value"] == "13"
    assert json.loads(_run("config", "path", "--json")[1]) == {
        "user": str(user),
        "project": str(empty / "dowse.toml"),
    }
    assert _run("config", "set", "topk", "1")[0] == 2


def test_doctor_without_an_index_warns_and_passes(empty: Path) -> None:
    code, out, _ = _run("doctor", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["ok"] is True
    assert {check["name"]: check["state"] for check in report["checks"]}["index"] == "warn"


def test_doctor_fails_when_the_named_index_is_not_there(empty: Path) -> None:
    assert _run("doctor", "--index", "nowhere")[0] == 1
