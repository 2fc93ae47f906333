"""The parts of the command line that need no index."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.find.search import search
from dowse.cli.help import FLAGS, page
from dowse.cli.main import COMMANDS, cli
from dowse.cli.manage import status
from dowse.cli.query_options import request_fields
from dowse.query.plan.profiles import PROFILES, named
from dowse.serve.wire.flags import FIELDS
from dowse.types import QueryRequest

NAMES = [name for name, _, _ in COMMANDS]
FIRST_FLAGS = """
    -k --limit --corpus --repo --service -t --lang -g --path --document --source --section --channel --author --since
    --until --meta --legs --fusion --alpha --weight --rank-constant --missing-rank --depth --profile --type --expand
    --no-expand --rerank --rerank-weight --half-life --freshness --boost --no-boost --parents --min-score
    --min-similarity --mmr --no-mmr --diversity --graph --no-graph --graph-hops --graph-weight --relation
    --graph-min-weight --graph-bidirectional --no-graph-bidirectional --graph-slots --services --no-services --explain
    --cache --no-cache --deadline --strict --jsonl --trec -l --files-with-matches -0 --null -C --context
"""


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
    text = out.split("General:")[0]
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


def test_every_field_of_a_request_can_be_set() -> None:
    assert set(FIELDS) == {field.name for field in fields(QueryRequest)} - {"text", "where"}
    assert set(FIELDS) <= {param.name for param in search.params}


def test_search_help_shows_the_everyday_flags_in_groups() -> None:
    _, out, _ = _run("search", "--help")
    groups = re.findall(r"^(\w[\w ]*):$", out, flags=re.MULTILINE)
    assert groups == ["What", "Where", "When", "How many", "Output", "General"]
    shared = {"--json", "-q", "-v", "--no-color", "--index", "-h", "--help-all"}
    shown = set(re.findall(r"^  (-[\w-]+)", out, flags=re.MULTILINE)) - shared
    assert len(shown) == 21
    assert {"-t", "--repo", "--service", "--corpus", "--since", "--until", "-l", "-C", "-k", "--set"} <= shown
    assert "--fusion" not in out


@pytest.mark.parametrize("name", ["search", "explain", "eval", "judge"])
def test_help_all_lists_every_name_that_can_be_set(name: str) -> None:
    code, out, _ = _run(name, "--help-all")
    assert code == 0
    assert set(FIELDS) <= set(re.findall(r"^  (\w+)=", out, flags=re.MULTILINE))


def test_help_names_the_default_that_the_default_profile_has() -> None:
    profile = named("default", PROFILES)
    options = profile.graph_options
    for name, each in FIELDS.items():
        own = getattr(profile, name, getattr(options, name.removeprefix("graph_"), None))
        told = re.search(r"\[default: ([\d.]+|true|false)\]", each.help)
        if told and own is not None:
            assert told[1] == (str(own).lower() if isinstance(own, bool) else f"{own:g}"), name


def test_set_takes_every_field_by_name(empty: Path) -> None:
    given = {"alpha": "0.5", "legs": "dense,bm25_nlp", "weights": "dense=2", "created_after": "90d", "mmr": "true"}
    texts = [word for name, text in given.items() for word in ("--set", f"{name}={text}")]
    context = search.make_context("search", [*texts, "--set", "path_filter=*.py", "--set", "path_filter=*.go", "x"])
    found = request_fields(context.params)
    assert found.pop("created_after") < datetime.now(UTC) - timedelta(days=89)
    assert found == {
        "alpha": 0.5, "legs": ("dense", "bm25_nlp"), "weights": (("dense", 2.0),), "mmr": True,
        "path_filter": ("*.py", "*.go"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("alpa=1", "unknown setting 'alpa'; did you mean 'alpha'?"),
        ("half-life=3", "unknown setting 'half-life'; did you mean 'freshness_half_life_days'?"),
        ("lang=go", "unknown setting 'lang'; did you mean 'language_filter'?"),
        ("where=x", "unknown setting 'where'; "),
        ("zzz=1", "unknown setting 'zzz'; run 'dowse search --help-all' for the names"),
        ("alpha", "--set 'alpha' has no value; write --set alpha=VALUE"),
        ("alpha=much", "invalid value 'much' for --set alpha: expected a number from 0 to 1"),
    ],
)
@pytest.mark.parametrize("command", [["search", "x"], ["explain", "x", "y"], ["judge", "x"], ["eval", "x"]])
def test_a_wrong_setting_is_refused_with_advice(empty: Path, command: list[str], text: str, told: str) -> None:
    code, out, err = _run(*command, "--set", text)
    assert (code, out) == (2, "")
    assert told in err


def test_a_field_given_twice_is_refused(empty: Path) -> None:
    code, _, err = _run("search", "-k", "3", "--set", "top_k=5", "x")
    assert code == 2
    assert "top_k is given twice" in err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--fusion", "rrf"], "--set fusion=rrf"),
        (["--half-life", "30"], "--set freshness_half_life_days=30"),
        (["--weight", "dense=1", "--weight", "bm25_nlp=2"], "--set weights=dense=1 --set weights=bm25_nlp=2"),
        (["--no-cache"], "--set cache=false"),
        (["--strict"], "--set strict=true"),
        (["--meta", "team=a b"], "--set 'meta_filter=team=a b'"),
    ],
)
def test_an_old_flag_works_with_a_note_that_has_the_new_spelling(empty: Path, old: list[str], new: str) -> None:
    flag = old[0]
    before = request_fields(search.make_context("search", [*old, "x"]).params)
    assert before == request_fields(search.make_context("search", [*shlex.split(new), "x"]).params)
    assert f"{flag} is deprecated and will be removed in the next version; use: {new}\n" in _run("search", *old, "x")[2]
    assert "deprecated" not in _run("search", *old, "-q", "x")[2]
    assert flag not in _run("search", "--help-all")[1]


def test_every_flag_of_the_first_version_is_still_there() -> None:
    every = {name for param in search.params for name in (*param.opts, *param.secondary_opts)}
    assert every >= set(FIRST_FLAGS.split())


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

    monkeypatch.setattr("dowse.cli.session.CommandSession.existing_index", broken)
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
    assert [item.value for item in complete.get_completions([], "re")] == [
        "related",
        "remove",
        "rebuild",
        "restore",
        "reembed",
    ]
    assert "--files-with-matches" in [item.value for item in complete.get_completions(["search"], "--f")]
    assert "graph_hops=" in [item.value for item in complete.get_completions(["search", "--set"], "graph_")]


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


def test_config_unset_removes_one_key_and_keeps_the_rest(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = empty / "user.toml"
    user.write_text("# ours\ntop_k = 12\nprofile = 'ours'\n\n[profiles.ours]\ntop_k = 3\n")
    monkeypatch.setenv("DOWSE_CONFIG", str(user))
    assert _run("config", "unset", "top_k")[:2] == (0, f"Removed top_k from {user}.\n")
    assert user.read_text() == "# ours\nprofile = 'ours'\n\n[profiles.ours]\ntop_k = 3\n"
    assert _run("config", "unset", "top_k")[:2] == (0, f"top_k is not set in {user}; nothing changed.\n")
    assert _run("config", "set", "top_k", "7")[0] == 0
    assert user.read_text() == "top_k = 7\n# ours\nprofile = 'ours'\n\n[profiles.ours]\ntop_k = 3\n"


def test_config_unset_speaks_json_names_the_nearest_key_and_what_still_sets_it(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty / "dowse.toml").write_text("top_k = 12\n")
    file = str(empty / "dowse.toml")
    monkeypatch.setenv("DOWSE_TOP_K", "9")
    code, out, err = _run("config", "unset", "--project", "top_k", "--json")
    assert (code, json.loads(out)) == (0, {"name": "top_k", "removed": True, "file": file})
    assert "top_k is still set by DOWSE_TOP_K" in err
    out = _run("config", "unset", "--project", "top_k", "--json")[1]
    assert json.loads(out) == {"name": "top_k", "removed": False, "file": file}
    code, _, err = _run("config", "unset", "topk")
    assert code == 2
    assert "unknown setting 'topk'; did you mean 'top_k'?" in err


def test_doctor_without_an_index_warns_and_passes(empty: Path) -> None:
    code, out, _ = _run("doctor", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["ok"] is True
    assert {check["name"]: check["state"] for check in report["checks"]}["index"] == "warn"


def test_doctor_names_the_kernel_in_use(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> dict[str, str]:
        return {check["name"]: check for check in json.loads(_run("doctor", "--json")[1])["checks"]}["kernel"]

    pytest.importorskip("dowse.store.kernels._native", reason="the native kernel was not built")
    assert kernel()["detail"].startswith("native, ")
    monkeypatch.setenv("DOWSE_KERNEL", "numpy")
    assert kernel()["detail"] == "numpy, as configured"
    monkeypatch.setattr(status, "find_spec", lambda name: None)
    assert (kernel()["state"], "C compiler" in kernel()["fix"]) == ("warn", True)


def test_doctor_fails_when_the_named_index_is_not_there(empty: Path) -> None:
    assert _run("doctor", "--index", "nowhere")[0] == 1


def test_doctor_names_the_model_and_half_a_language_model(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_EMBEDDER", "auto")
    monkeypatch.setenv("DOWSE_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    checks = {each["name"]: each for each in json.loads(_run("doctor", "--json")[1])["checks"]}
    assert checks["embedder"]["state"] == "warn"
    assert checks["embedder"]["fix"].startswith("dowse models pull ")
    assert checks["language model"]["fix"] == "dowse config set llm_model NAME"
