"""Settings files, environment and flags enter; one frozen Config that knows each value's origin leaves.

Later wins: built-in default, the user's config.toml, the project's dowse.toml or [tool.dowse] in its
pyproject.toml, DOWSE_* in the environment, flags. API keys are no settings: they are read from the
environment where they are used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dowse.errors import BadRequestError

INDEX_FOLDER = ".dowse"
PROJECT_FILE = "dowse.toml"
USER_FILE_VARIABLE = "DOWSE_CONFIG"  # another place for the user's config.toml
PROFILES = "profiles"  # [profiles.NAME]
KINDS = "kinds"  # [[kinds]]; with the one above, the keys of a settings file that hold tables
FLAG = "flag"
DEFAULT = "default"

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmg]?)i?b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


@dataclass(frozen=True)
class Setting:
    """One thing that can be set."""

    name: str
    variable: str
    kind: Literal["text", "count", "size", "path"]
    help: str


SETTINGS = (
    Setting("index", "DOWSE_INDEX", "path", "The index folder; else the nearest .dowse/ upwards."),
    Setting("embedder", "DOWSE_EMBEDDER", "text", "auto, none, a name, a folder, a hub id, URL#model."),
    Setting("models_folder", "DOWSE_MODELS", "path", "Where model weights are kept."),
    Setting("threads", "DOWSE_THREADS", "count", "Threads for embedding."),
    Setting("max_file_bytes", "DOWSE_MAX_FILE_BYTES", "size", "Larger files are skipped; 500KB, 4MB."),
    Setting("scrub_names", "DOWSE_SCRUB_NAMES", "path", "A file of names that --scrub hides, one a line."),
    Setting("kernel", "DOWSE_KERNEL", "text", "Inner loops: auto (fast in servers that have it), numpy, fast."),
    Setting("top_k", "DOWSE_TOP_K", "count", "How many hits a search gives; else what the profile says."),
    Setting("profile", "DOWSE_PROFILE", "text", "The named query pipeline."),
    Setting("reranker", "DOWSE_RERANKER", "text", "The cross-encoder: none, a folder, a hub id."),
    Setting("llm_base_url", "DOWSE_LLM_BASE_URL", "text", "An OpenAI-compatible endpoint, as https://host/v1."),
    Setting("llm_model", "DOWSE_LLM_MODEL", "text", "The language model to ask there; the key: DOWSE_LLM_API_KEY."),
)


def user_folder(kind: Literal["cache", "config"]) -> Path:
    """Where the system has a program's files of this kind: as XDG says, or as Apple does.

    platformdirs knows it, too, takes 9 ms of every cold search to import, and .4 MB.
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
    """All settings. `Config()` is the defaults; `load` also reads files and the environment."""

    index: Path | None = None
    embedder: str = "auto"
    models_folder: Path = field(default_factory=default_models_folder)
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    max_file_bytes: int = 4 * 1024**2  # chosen: generated data is larger, hand-written text hardly ever
    scrub_names: Path | None = None
    kernel: str = "auto"
    top_k: int | None = None
    profile: str = "default"
    reranker: str = "none"
    llm_base_url: str | None = None
    llm_model: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)  # [profiles.NAME] as written
    kinds: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)  # [[kinds]] as written, the nearest first
    origins: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, start: Path, env: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Config:
        """The settings that hold in the folder `start`. `flags` are texts by setting name, as typed."""
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

    def origin(self, name: str) -> str:
        """A file, a variable, "flag" or "default"."""
        return dict(self.origins).get(name, DEFAULT)


def setting(name: str) -> Setting:
    """The setting of that name, or an error with the nearest one."""
    return _known(name, "no setting")


def user_file(env: Mapping[str, str]) -> Path:
    """The user's config.toml, whether it exists or not."""
    if named := env.get(USER_FILE_VARIABLE):
        return Path(named).expanduser()
    return user_folder("config") / "config.toml"


def project_file(start: Path) -> Path | None:
    """The nearest dowse.toml, or pyproject.toml with [tool.dowse], up to the root of the project."""
    for folder in _up_to_root(start):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if (folder / "pyproject.toml").is_file() and _table(folder / "pyproject.toml"):
            return folder / "pyproject.toml"
    return None


def find_index(start: Path) -> Path | None:
    """The nearest .dowse/ in `start` or above it."""
    return next((f / INDEX_FOLDER for f in (start, *start.parents) if os.path.isdir(f / INDEX_FOLDER)), None)


def new_index(start: Path) -> Path:
    """Where an index for `start` is made: at the root of its git work tree, else in `start` itself."""
    return (_git_root(start) or start) / INDEX_FOLDER


def write_setting(file: Path, name: str, text: str) -> None:
    """Set one key in a settings file of our own and keep the rest; the file is replaced as a whole."""
    value = _from_text(setting(name), text, "config set")
    line = f"{name} = {value}" if isinstance(value, int) else f"{name} = {_quoted(text)}"
    old = _read(file).splitlines() if file.exists() else []
    at = next((i for i, row in enumerate(old) if re.match(rf"\s*{name}\s*=", row)), None)
    rows = [line, *old] if at is None else [*old[:at], line, *old[at + 1 :]]
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
    if user.exists():  # also a device: /dev/null is a way to say "none"
        yield str(user), _from_file(user)
    elif USER_FILE_VARIABLE in env:
        raise BadRequestError(f"no settings file {user}; correct or unset {USER_FILE_VARIABLE}")
    project = project_file(start)
    if project:
        yield str(project), _trusted(project, _from_file(project))
    for known in SETTINGS:
        if env.get(known.variable):
            yield known.variable, {known.name: _from_text(known, env[known.variable], known.variable, start)}
    for name, text in flags.items():
        yield FLAG, {name: _from_text(setting(name), text, name, start)}


def _trusted(project: Path, values: dict[str, Any]) -> dict[str, Any]:
    """A project's file may come with a clone: it may not send what is indexed to a server of its choice."""
    for name in ("embedder", "llm_base_url"):
        address = str(values.get(name, ""))
        if address.startswith(("http://", "https://")):
            raise BadRequestError(
                f"{project}: {name} {address!r} would send indexed text to a server, which a project's file "
                f"may not decide; if you want it, type: dowse config set {name} {address}"
            )
    return values


def _from_file(file: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in _table(file).items():
        if key == PROFILES:
            values[key] = _profile_tables(value, file)
            continue
        if key == KINDS:
            values[key] = _kind_tables(value, file)
            continue
        known = _known(key, f"{file}: unknown key")
        values[key] = _from_toml(known, value, file)
    return values


def _profile_tables(value: object, file: Path) -> dict[str, Any]:
    """Only the outer shape is checked here; what is in them is the query path's own business."""
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise BadRequestError(f"{file}: profiles are no tables; write [profiles.NAME] and keys below it")
    return value


def _kind_tables(value: object, file: Path) -> tuple[Mapping[str, Any], ...]:
    """As above: the rules themselves are the business of those who read files."""
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise BadRequestError(f"{file}: kinds are no tables; write [[kinds]] and keys below it")
    return tuple(value)


def _table(file: Path) -> dict[str, Any]:
    """The part of a settings file that is ours."""
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


def _from_toml(known: Setting, value: object, file: Path) -> object:
    where = f"{file}: {known.name}"
    if isinstance(value, str):
        return _from_text(known, value, where, file.parent)
    if known.kind in ("count", "size") and isinstance(value, int) and not isinstance(value, bool):
        return _positive(value, where)
    wanted = {"text": "text in quotes", "path": "a path in quotes"}.get(known.kind, "a whole number")
    raise BadRequestError(f"{where} is {value!r}, but must be {wanted}")


def _from_text(known: Setting, text: str, where: str, folder: Path | None = None) -> object:
    """`folder` is what a relative path is relative to."""
    if known.kind == "path":
        path = Path(text).expanduser()
        return folder / path if folder else path
    if known.kind == "text":
        if not text.strip():
            raise BadRequestError(f"{where} is blank; remove it or give it a value")
        return text
    if known.kind == "size":
        return _positive(_size_bytes(text, where), where)
    try:
        return _positive(int(text), where)
    except ValueError as err:
        raise BadRequestError(f"{where} is {text!r}, but must be a whole number") from err


def _size_bytes(text: str, where: str) -> int:
    """`4MB`, `500 kB`, `1.5g` or plain bytes; a kilobyte is 1,024 bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise BadRequestError(f"{where} is {text!r}, but must be a size such as 500KB, 4MB or plain bytes")
    return int(float(match[1]) * 1024 ** _POWERS[match[2].lower()])


def _positive(value: int, where: str) -> int:
    if value <= 0:
        raise BadRequestError(f"{where} is {value}, but must be above 0")
    return value


def _known(name: str, complaint: str) -> Setting:
    found = next((known for known in SETTINGS if known.name == name), None)
    if found is None:
        from difflib import get_close_matches

        names = [known.name for known in SETTINGS]
        close = get_close_matches(name, names, n=1)
        advice = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(names)}"
        raise BadRequestError(f"{complaint} {name!r}; {advice}")
    return found


def _up_to_root(start: Path) -> Iterator[Path]:
    """`start` and above, up to the project's root; without a root only `start`: above may be anyone's."""
    root = _git_root(start)
    index = find_index(start)
    root = root or (index.parent if index else start)
    for folder in (start, *start.parents):
        yield folder
        if folder == root:
            return


def _git_root(start: Path) -> Path | None:
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)


def _quoted(text: str) -> str:
    """A TOML basic string, which is written as JSON writes it."""
    import json

    return json.dumps(text)


def as_texts(config: Config) -> dict[str, str]:
    """Every setting as it would be typed, "" where nothing is set."""
    values = {known.name: getattr(config, known.name) for known in SETTINGS}
    return {name: "" if value is None else str(value) for name, value in values.items()}
