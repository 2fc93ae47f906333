"""Writer of tuned profiles: adds a profile to a TOML settings file and keeps the rest of it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from dowse.errors import BadRequestError
from dowse.evaluate.pools import Knobs
from dowse.query.plan.profiles import PROFILES
from dowse.query.stages.freshness_and_boost import BoostRule

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def checked_name(name: str) -> str:
    """Return the name if TOML needs no quotes for it and no built-in profile has it."""
    if not _NAME.fullmatch(name):
        raise BadRequestError(f"invalid profile name {name!r}; use small letters, digits, - and _, as in team-docs")
    if name in (each.name for each in PROFILES):
        raise BadRequestError(f"{name!r} is a built-in profile; choose another name")
    return name


class Tuned(msgspec.Struct, frozen=True):
    """Tuned settings: knobs up to fusion, and fields of a profile for the stages after it."""

    knobs: Knobs
    stages: tuple[tuple[str, Any], ...] = ()
    base: str = "default"  # the tuned profile; its other fields stay


def profile_text(name: str, tuned: Tuned) -> str:
    knobs = tuned.knobs
    rows = [f"[profiles.{name}]", f'base = "{tuned.base}"', 'fusion = "z"']
    if knobs.prose_share == 0.5:
        rows.append(f"alpha = {float(knobs.alpha)}")
    else:
        weights = ", ".join(f"{leg} = {round(weight, 6)}" for leg, weight in knobs.leg_weights)
        rows.append(f"weights = {{ {weights} }}")
    rows += [f"exponent = {float(knobs.exponent)}", f"depth = {knobs.depth}"]
    rows += [f"hubness = {float(knobs.hubness)}", f"smoothing = {float(knobs.smoothing)}"]
    rows += [f"k1 = {float(knobs.bm25.k1)}", f"b = {float(knobs.bm25.b)}"]
    rows += [f"{field} = {_toml(value)}" for field, value in tuned.stages]
    return "\n".join([*rows, ""])


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, BoostRule):
        words, kinds = _toml(value.words), _toml(value.corpus_types)
        return f"{{ words = {words}, corpus_types = {kinds}, factor = {round(value.factor, 6)} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    return repr(value)


def save_profile(file: Path, name: str, tuned: Tuned) -> Path:
    """Add the profile at the end of the file; replace one of the same name."""
    try:
        old = file.read_text("utf-8") if file.exists() else ""
        tomllib.loads(old)
        kept = re.sub(rf"^\[profiles\.{re.escape(name)}\]\n(?:(?!\[).*\n?)*", "", old, flags=re.MULTILINE)
        text = f"{kept.rstrip()}\n\n{profile_text(name, tuned)}".lstrip()
        tomllib.loads(text)
        scratch = file.with_name(f".{file.name}.new")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(file)
    except tomllib.TOMLDecodeError as err:
        raise BadRequestError(f"{file} is not valid TOML: {err}; correct it, then run `dowse tune` again") from err
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; run `dowse tune` in another folder") from err
    return file
