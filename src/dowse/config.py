"""Settings: files, environment and flags enter; one frozen Config with the origin of each value leaves.

A later source overrides an earlier one: default, the user's config.toml, the project's dowse.toml or [tool.dowse] in
its pyproject.toml, DOWSE_* variables, flags. API keys are not settings: they are read from the environment where they
are used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from dowse.errors import BadRequestError

INDEX_FOLDER = ".dowse"
PROJECT_FILE = "dowse.toml"
USER_FILE_VARIABLE = "DOWSE_CONFIG"  # another place for the user's config.toml
PROFILES = "profiles"  # [profiles.NAME]
KINDS = "kinds"  # [[kinds]]; with the one above, the keys of a settings file that hold tables
FLAG = "flag"
DEFAULT = "default"
RENAMED_KEYS: Mapping[str, str] = {"crowd": "hubness", "pull": "smoothing", "steer": ""}
"""Former keys of [profiles.NAME] and their names today; an empty name is a key without effect. Read for one version."""
FORMER_NAMES: Mapping[str, str] = {"scrub_names": "pseudonym_names", "DOWSE_SCRUB_NAMES": "DOWSE_PSEUDONYM_NAMES"}
"""Former settings and variables, read for one version."""

_EFFECTS = {
    "index": "read and write an index outside the project",
    "embedder": "send indexed text to a server, or load a model from outside the project",
    "reranker": "load a model from outside the project",
    "models_folder": "load models from outside the project",
    "llm_base_url": "send indexed text to a server",
}  # of settings that a project's file may set only if it is trusted
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmg]?)i?b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


class ConfigKey(msgspec.Struct, frozen=True):
    """One setting: its name, its variable, the form of its value."""

    name: str
    variable: str
    kind: Literal["text", "count", "size", "path"]
    help: str


SETTINGS = (
    ConfigKey("index", "DOWSE_INDEX", "path", "Index folder."),
    ConfigKey(
        "embedder", "DOWSE_EMBEDDER", "text", "Embedding model: auto, none, a name, a folder, a hub id or URL#model."
    ),
    ConfigKey("models_folder", "DOWSE_MODELS", "path", "Folder of downloaded models."),
    ConfigKey("threads", "DOWSE_THREADS", "count", "Number of threads for embedding."),
    ConfigKey("max_file_bytes", "DOWSE_MAX_FILE_BYTES", "size", "Skip files larger than this, such as 500KB or 4MB."),
    ConfigKey(
        "pseudonym_names", "DOWSE_PSEUDONYM_NAMES", "path", "File of names that --pseudonyms replaces, one per line."
    ),
    ConfigKey(
        "kernel",
        "DOWSE_KERNEL",
        "text",
        "Implementation of the inner loops: auto, numpy or native; auto uses native if it was built.",
    ),
    ConfigKey("top_k", "DOWSE_TOP_K", "count", "Number of results [default: by profile]."),
    ConfigKey("profile", "DOWSE_PROFILE", "text", "Named query pipeline."),
    ConfigKey("reranker", "DOWSE_RERANKER", "text", "Cross-encoder: none, a folder or a hub id."),
    ConfigKey("llm_base_url", "DOWSE_LLM_BASE_URL", "text", "OpenAI-compatible endpoint, such as https://host/v1."),
    ConfigKey(
        "llm_model", "DOWSE_LLM_MODEL", "text", "Language model at that endpoint; its API key is in DOWSE_LLM_API_KEY."
    ),
    ConfigKey(
        "llm_rerank_model", "DOWSE_LLM_RERANK_MODEL", "text", "Smaller model for reranking [default: llm_model]."
    ),
)


def user_folder(kind: Literal["cache", "config"]) -> Path:
    """Return the user's folder for files of this kind, by the rules of XDG or Apple.

    platformdirs does the same, but its import adds 9 ms and 0.4 MB to every cold search.
    """
    if chosen := os.environ.get(f"XDG_{kind.upper()}_HOME", "").strip():
        return Path(chosen).expanduser() / "dowse"
    if sys.platform == "darwin":
        return Path.home() / "Library" / {"cache": "Caches", "config": "Application Support"}[kind] / "dowse"
    return Path.home() / f".{kind}" / "dowse"


def default_models_folder() -> Path:
    return user_folder("cache") / "models"


@dataclass(frozen=True)
class Config:
    """All settings. `Config()` has the defaults; `load` also reads files and the environment."""

    index: Path | None = None
    embedder: str = "auto"
    models_folder: Path = field(default_factory=default_models_folder)
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    max_file_bytes: int = 4 * 1024**2  # chosen: generated data is larger, hand-written text hardly ever
    pseudonym_names: Path | None = None
    kernel: str = "auto"
    top_k: int | None = None
    profile: str = "default"
    reranker: str = "none"
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_rerank_model: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)  # [profiles.NAME] as written
    kinds: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)  # [[kinds]] as written, the nearest first
    origins: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, start: Path, env: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Config:
        """Load the settings for the folder `start`. `flags` are texts by setting name, as typed."""
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for origin, layer in _layers(start, env, flags or {}):
            if PROFILES in layer:
                layer = layer | {PROFILES: values.get(PROFILES, {}) | layer[PROFILES]}
            if KINDS in layer:
                layer = layer | {KINDS: layer[KINDS] + values.get(KINDS, ())}
            values |= layer
            origins |= dict.fromkeys(layer, origin)
        return cls(**values, origins=tuple(origins.items()))

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each former key in a profile, with the key to write instead."""
        return tuple(
            f"[profiles.{profile}]: {old} is called {new} now; rename the key"
            if (new := RENAMED_KEYS[old])
            else f"[profiles.{profile}]: {old} has no effect any more; remove the key"
            for profile, table in self.profiles.items()
            for old in RENAMED_KEYS
            if old in table
        )

    def origin(self, name: str) -> str:
        """Return the source of a value: a file, a variable, "flag" or "default"."""
        return dict(self.origins).get(name, DEFAULT)


def setting(name: str) -> ConfigKey:
    """Return the setting of that name, or raise an error that names the nearest one."""
    return _known(name, "unknown setting")


def user_file(env: Mapping[str, str]) -> Path:
    """Return the path of the user's config.toml, whether it exists or not."""
    if named := env.get(USER_FILE_VARIABLE):
        return Path(named).expanduser()
    return user_folder("config") / "config.toml"


def project_file(start: Path) -> Path | None:
    """Find the nearest dowse.toml, or pyproject.toml with [tool.dowse], up to the root of the project."""
    index = find_index(start)
    root = _git_root(start) or (index.parent if index else start)  # of the project; else only `start` is searched
    folders = (start, *start.parents)
    for folder in folders[: folders.index(root) + 1]:
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / "pyproject.toml").is_file() and _table(folder / "pyproject.toml"):
            return folder / "pyproject.toml"
    return None


def find_index(start: Path) -> Path | None:
    """Find the nearest .dowse/ in `start` or above it."""
    return next((f / INDEX_FOLDER for f in (start, *start.parents) if os.path.isdir(f / INDEX_FOLDER)), None)


def new_index(start: Path) -> Path:
    """Return the place for a new index: the root of the git work tree around `start`, else `start` itself."""
    return (_git_root(start) or start) / INDEX_FOLDER


def write_setting(file: Path, name: str, text: str) -> str:
    """Set one key in a settings file of our own and keep the rest; return the value that it means."""
    import json

    value = _from_text(setting(name), text, name)
    # A TOML basic string is written as JSON writes it.
    line = f"{name} = {value}" if isinstance(value, int) else f"{name} = {json.dumps(text)}"
    rows, at = _rows(file, name)
    _replace(file, name, [line, *rows] if at is None else [*rows[:at], line, *rows[at + 1 :]])
    return str(_from_text(setting(name), text, "config set", file.parent))


def unset_setting(file: Path, name: str) -> bool:
    """Remove one key from a settings file of our own; return whether it was there."""
    rows, at = _rows(file, name)
    if at is not None:
        _replace(file, name, [*rows[:at], *rows[at + 1 :]])
    return at is not None


def _rows(file: Path, name: str) -> tuple[list[str], int | None]:
    rows = _read(file).splitlines() if file.exists() else []
    tables = next((at for at, row in enumerate(rows) if row.lstrip().startswith("[")), len(rows))
    return rows, next((at for at, row in enumerate(rows[:tables]) if re.match(rf"\s*{name}\s*=", row)), None)


def _replace(file: Path, name: str, rows: Sequence[str]) -> None:
    """Write a settings file as a whole, so that a crash leaves the old one or the new one."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text("\n".join(rows) + "\n", encoding="utf-8")
        _table(scratch)
        scratch.replace(file)
    except OSError as err:
        variable = setting(name).variable
        raise BadRequestError(f"cannot write {file}: {err.strerror}; set {variable} instead") from err
    finally:
        scratch.unlink(missing_ok=True)


def _layers(start: Path, env: Mapping[str, str], flags: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    user = user_file(env)
    if user.exists():  # also a device: /dev/null means no settings
        yield str(user), _from_file(user)
    elif USER_FILE_VARIABLE in env:
        raise BadRequestError(f"no settings file {user}; correct or unset {USER_FILE_VARIABLE}")
    project = project_file(start)
    if project:
        yield str(project), _checked(project, _from_file(project), env)
    env = {FORMER_NAMES.get(name, name): text for name, text in env.items()}
    for known in SETTINGS:
        if env.get(known.variable):
            yield known.variable, {known.name: _from_text(known, env[known.variable], known.variable, start)}
    for name, text in flags.items():
        yield FLAG, {name: _from_text(setting(name), text, name, start)}


def _checked(project: Path, values: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Refuse servers, models and folders outside the project in its file, which may come with a clone."""
    from dowse import trust

    for known in SETTINGS:
        value = values.get(known.name)
        if value is None or known.name not in _EFFECTS:
            continue
        if known.kind == "path":
            harmless = trust.is_below(value, project.parent)
        else:
            harmless = known.name != "llm_base_url" and trust.is_plain_model(value)
        if not harmless and not trust.is_trusted(project, str(value), env):
            raise BadRequestError(f"{known.name} in {trust.refusal(project, str(value), _EFFECTS[known.name])}")
    return values


def _from_file(file: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in _table(file).items():
        # Of tables, only the outer shape is checked here: the query and ingest packages read their keys.
        if key == PROFILES:
            if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
                raise BadRequestError(f"{file}: profiles must be tables; write [profiles.NAME] and keys below it")
            values[key] = value
        elif key == KINDS:
            if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
                raise BadRequestError(f"{file}: kinds must be tables; write [[kinds]] and keys below it")
            values[key] = tuple(value)
        else:
            known = _known(FORMER_NAMES.get(key, key), f"{file}: unknown key")
            values[known.name] = _from_toml(known, value, file)
    return values


def _table(file: Path) -> dict[str, Any]:
    """Parse the settings of a file: all of it, or [tool.dowse] of a pyproject.toml."""
    import tomllib

    try:
        content = tomllib.loads(_read(file))
    except tomllib.TOMLDecodeError as err:
        raise BadRequestError(f"{file} is not valid TOML: {err}; correct it or move it away") from err
    if file.name != "pyproject.toml":
        return content
    tool = content.get("tool", {})
    ours = tool.get("dowse", {}) if isinstance(tool, dict) else {}
    if not isinstance(ours, dict):
        raise BadRequestError(f"{file}: tool.dowse is not a table; write [tool.dowse] and keys below it")
    return ours


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as err:
        raise BadRequestError(f"cannot read settings from {file}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise BadRequestError(f"{file} is not valid UTF-8 at byte {err.start}; save it as UTF-8") from err


def _from_toml(known: ConfigKey, value: object, file: Path) -> object:
    where = f"{file}: {known.name}"
    if isinstance(value, str):
        return _from_text(known, value, where, file.parent)
    if known.kind in ("count", "size") and isinstance(value, int) and not isinstance(value, bool):
        return _positive(value, where)
    wanted = {"text": "text in quotes", "path": "a path in quotes"}.get(known.kind, "a whole number")
    raise BadRequestError(f"{where} is {value!r}, but must be {wanted}")


def _from_text(known: ConfigKey, text: str, where: str, folder: Path | None = None) -> object:
    """Convert a typed text; relative paths are relative to `folder`."""
    if known.kind == "path":
        path = Path(text).expanduser()
        return folder / path if folder else path
    if known.kind == "text":
        if not text.strip():
            raise BadRequestError(f"{where} is blank; remove it or give it a value")
        return text
    if known.kind == "size":  # 4MB, 500 kB, 1.5g or plain bytes; a kilobyte is 1,024 bytes
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise BadRequestError(f"{where} is {text!r}, but must be a size such as 500KB, 4MB or plain bytes")
        return _positive(int(float(match[1]) * 1024 ** _POWERS[match[2].lower()]), where)
    try:
        return _positive(int(text), where)
    except ValueError as err:
        raise BadRequestError(f"{where} is {text!r}, but must be a whole number") from err


def _positive(value: int, where: str) -> int:
    if value <= 0:
        raise BadRequestError(f"{where} is {value}, but must be above 0")
    return value


def _known(name: str, complaint: str) -> ConfigKey:
    found = next((known for known in SETTINGS if known.name == name), None)
    if found is None:
        raise BadRequestError(f"{complaint} {name!r}; {suggestion(name, [known.name for known in SETTINGS])}")
    return found


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return the advice for an unknown name: the nearest of the known ones, or all of them."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}"


def _git_root(start: Path) -> Path | None:
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)


def as_texts(config: Config) -> dict[str, str]:
    """Format every setting as it would be typed, "" where nothing is set."""
    values = {known.name: getattr(config, known.name) for known in SETTINGS}
    return {name: "" if value is None else str(value) for name, value in values.items()}
