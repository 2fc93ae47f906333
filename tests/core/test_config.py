from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.config import (
    SETTINGS,
    Config,
    as_texts,
    default_models_folder,
    find_index,
    new_index,
    project_file,
    user_folder,
    write_setting,
)
from dowse.errors import BadRequestError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree with a folder in it."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    return tmp_path / "repo"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment whose user file is empty and not in anyone's home."""
    user = tmp_path / "config.toml"
    user.write_text("")
    return {"DOWSE_CONFIG": str(user)}


def _user(env: dict[str, str], text: str) -> None:
    Path(env["DOWSE_CONFIG"]).write_text(text)


def test_without_files_and_variables_all_is_default(project: Path, env: dict[str, str]) -> None:
    config = Config.load(project, env)
    assert config == Config()
    assert {config.origin(setting.name) for setting in SETTINGS} == {"default"}


def test_each_layer_wins_over_the_one_before(project: Path, env: dict[str, str]) -> None:
    _user(env, "top_k = 1\nthreads = 1\nmax_file_bytes = 1\nprofile = 'a'\n")
    (project / "dowse.toml").write_text("threads = 2\nmax_file_bytes = 2\nprofile = 'b'\n")
    config = Config.load(project / "src", env | {"DOWSE_MAX_FILE_BYTES": "3", "DOWSE_PROFILE": "c"}, {"profile": "d"})
    assert (config.top_k, config.threads, config.max_file_bytes, config.profile) == (1, 2, 3, "d")
    assert config.origin("top_k") == env["DOWSE_CONFIG"]
    assert config.origin("threads") == str(project / "dowse.toml")
    assert config.origin("max_file_bytes") == "DOWSE_MAX_FILE_BYTES"
    assert config.origin("profile") == "flag"
    assert config.origin("embedder") == "default"


def test_pyproject_counts_only_with_a_table_of_ours(project: Path, env: dict[str, str]) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert project_file(project / "src") is None
    (project / "pyproject.toml").write_text("[tool.dowse]\ntop_k = 7\n")
    assert Config.load(project / "src", env).top_k == 7


def test_the_nearest_project_file_is_the_only_one_read(project: Path, env: dict[str, str]) -> None:
    (project / "dowse.toml").write_text("top_k = 5\nthreads = 5\n")
    (project / "src" / "dowse.toml").write_text("top_k = 6\n")
    config = Config.load(project / "src", env)
    assert config.top_k == 6
    assert config.origin("threads") == "default"


def test_files_above_the_project_are_not_read(project: Path, env: dict[str, str]) -> None:
    (project.parent / "dowse.toml").write_text("top_k = 9\n")
    assert Config.load(project / "src", env).top_k is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("top_kk = 3", "unknown key 'top_kk'; did you mean 'top_k'?"),
        ("zzz = 3", "unknown key 'zzz'; choose from index, embedder"),
        ("top_k = true", "top_k is True, but must be a whole number"),
        ("top_k = 'many'", "top_k is 'many', but must be a whole number"),
        ("top_k = 0", "top_k is 0, but must be above 0"),
        ("embedder = 3", "embedder is 3, but must be text in quotes"),
        ("embedder = ' '", "embedder is blank"),
        ("index = []", "index is [], but must be a path in quotes"),
        ("max_file_bytes = 'big'", "max_file_bytes is 'big', but must be a size"),
        ("top_k = ", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(project: Path, env: dict[str, str], text: str, message: str) -> None:
    (project / "dowse.toml").write_text(text)
    with pytest.raises(BadRequestError) as caught:
        Config.load(project, env)
    assert message in str(caught.value)
    assert str(project / "dowse.toml") in str(caught.value)


def test_a_wrong_variable_is_named(project: Path, env: dict[str, str]) -> None:
    with pytest.raises(BadRequestError, match="DOWSE_TOP_K is 'x', but must be a whole number"):
        Config.load(project, env | {"DOWSE_TOP_K": "x"})


def test_a_file_that_is_not_utf8_is_named(project: Path, env: dict[str, str]) -> None:
    (project / "dowse.toml").write_bytes(b"top_k = 3 # \xff")
    with pytest.raises(BadRequestError, match="not valid UTF-8 at byte 12"):
        Config.load(project, env)


@pytest.mark.parametrize(
    ("system", "cache", "config"),
    [
        ("linux", ".cache/dowse", ".config/dowse"),
        ("darwin", "Library/Caches/dowse", "Library/Application Support/dowse"),
    ],
)
def test_a_users_files_are_where_the_system_has_them(
    system: str, cache: str, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", " ")  # says nothing
    assert (user_folder("cache"), user_folder("config")) == (tmp_path / cache, tmp_path / config)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert user_folder("cache") == tmp_path / "elsewhere" / "dowse"
    assert default_models_folder() == tmp_path / "elsewhere" / "dowse" / "models"


def test_a_user_file_that_is_named_but_missing_is_an_error(project: Path) -> None:
    with pytest.raises(BadRequestError, match="no settings file"):
        Config.load(project, {"DOWSE_CONFIG": str(project / "nope.toml")})


def test_a_project_file_may_not_choose_a_server(project: Path, env: dict[str, str]) -> None:
    remote = "https://example.invalid/v1#m"
    (project / "dowse.toml").write_text(f"embedder = '{remote}'\n")
    with pytest.raises(BadRequestError, match="run: dowse trust"):
        Config.load(project, env)
    (project / "dowse.toml").unlink()
    _user(env, f"embedder = '{remote}'\n")
    assert Config.load(project, env).embedder == remote


def test_relative_paths_are_relative_to_where_they_are_written(project: Path, env: dict[str, str]) -> None:
    (project / "dowse.toml").write_text("index = 'idx'\n")
    assert Config.load(project / "src", env).index == project / "idx"
    assert Config.load(project / "src", env | {"DOWSE_INDEX": "idx"}).index == project / "src" / "idx"


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("10", 10), ("4MB", 4 * 1024**2), ("1.5k", 1024 + 512), ("500 KiB", 500 * 1024), ("2g", 2 * 1024**3)],
)
def test_sizes_are_read_as_people_write_them(project: Path, env: dict[str, str], text: str, size_bytes: int) -> None:
    assert Config.load(project, env | {"DOWSE_MAX_FILE_BYTES": text}).max_file_bytes == size_bytes


@given(st.text(min_size=1))
def test_any_text_as_a_size_is_above_zero_or_a_clear_error(text: str) -> None:
    with suppress(BadRequestError):
        assert Config.load(Path("/"), {"DOWSE_CONFIG": os.devnull}, {"max_file_bytes": text}).max_file_bytes > 0


def test_the_nearest_index_upwards_is_found(project: Path) -> None:
    assert find_index(project / "src") is None
    (project / ".dowse").mkdir()
    assert find_index(project / "src") == project / ".dowse"
    (project / "src" / ".dowse").mkdir()
    assert find_index(project / "src") == project / "src" / ".dowse"


def test_a_new_index_goes_to_the_git_root_or_here(project: Path, tmp_path: Path) -> None:
    assert new_index(project / "src") == project / ".dowse"
    assert new_index(tmp_path) == tmp_path / ".dowse"


def test_setting_a_key_keeps_the_rest_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "config.toml"
    write_setting(file, "top_k", "20")
    file.write_text("# mine\n" + file.read_text() + "profile = 'x' # why\n")
    write_setting(file, "top_k", "30")
    write_setting(file, "embedder", 'a "quoted" \\ name')
    assert "# mine" in file.read_text()
    config = Config.load(tmp_path, {"DOWSE_CONFIG": str(file)})
    assert (config.top_k, config.profile, config.embedder) == (30, "x", 'a "quoted" \\ name')
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_a_wrong_value_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="must be a whole number"):
        write_setting(tmp_path / "config.toml", "top_k", "many")
    with pytest.raises(BadRequestError, match="did you mean 'profile'"):
        write_setting(tmp_path / "config.toml", "profil", "x")
    assert list(tmp_path.iterdir()) == []


def test_every_setting_is_a_field_and_every_field_a_setting() -> None:
    assert list(as_texts(Config())) == [setting.name for setting in SETTINGS]


def test_former_keys_of_a_profile_are_noted(project: Path, env: dict[str, str]) -> None:
    (project / "dowse.toml").write_text("[profiles.mine]\ncrowd = 0.2\npull = 0.4\nsteer = true\nhubness = 0.1\n")
    assert Config.load(project, env).notes == (
        "[profiles.mine]: crowd is called hubness now; rename the key",
        "[profiles.mine]: pull is called smoothing now; rename the key",
        "[profiles.mine]: steer has no effect any more; remove the key",
    )
    assert Config.load(project.parent, env).notes == ()


def test_former_names_of_a_setting_are_read(project: Path, env: dict[str, str]) -> None:
    (project / "dowse.toml").write_text("scrub_names = 'people.txt'\n")
    assert Config.load(project, env).pseudonym_names == project / "people.txt"
    assert Config.load(project, env | {"DOWSE_SCRUB_NAMES": "/names"}).pseudonym_names == Path("/names")
