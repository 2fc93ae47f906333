"""Knobs go in; a profile as TOML comes out, in a settings file that keeps everything else it holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from dowse.errors import BadRequestError
from dowse.evaluate.pools import Knobs
from dowse.query.profiles import PROFILES

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def checked_name(name: str) -> str:
    """A name that TOML takes without quotes and no profile of ours has."""
    if not _NAME.fullmatch(name):
        raise BadRequestError(
            f"a profile cannot be named {name!r}; use small letters, digits, - and _, as in team-docs"
        )
    if name in (each.name for each in PROFILES):
        raise BadRequestError(f"{name!r} is a profile that comes with Dowse; choose another name")
    return name


def profile_text(name: str, knobs: Knobs, base: str = "default") -> str:
    """`base` is the profile that was tuned; what was not turned stays as it is there."""
    rows = [f"[profiles.{name}]", f'base = "{base}"', 'fusion = "z"']
    if knobs.prose_share == 0.5:
        rows.append(f"alpha = {float(knobs.alpha)}")
    else:
        weights = ", ".join(f"{leg} = {round(weight, 6)}" for leg, weight in knobs.leg_weights)
        rows.append(f"weights = {{ {weights} }}")
    return "\n".join([*rows, f"exponent = {float(knobs.exponent)}", f"depth = {knobs.depth}", ""])


def save_profile(file: Path, name: str, knobs: Knobs, base: str = "default") -> Path:
    """Added at the end, or in the place of the profile that had the name."""
    try:
        old = file.read_text("utf-8") if file.exists() else ""
        tomllib.loads(old)
        kept = re.sub(rf"^\[profiles\.{re.escape(name)}\]\n(?:(?!\[).*\n?)*", "", old, flags=re.MULTILINE)
        text = f"{kept.rstrip()}\n\n{profile_text(name, knobs, base)}".lstrip()
        tomllib.loads(text)
        scratch = file.with_name(f".{file.name}.new")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(file)
    except tomllib.TOMLDecodeError as err:
        raise BadRequestError(f"{file} is not valid TOML: {err}; correct it, then run `dowse tune` again") from err
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; run `dowse tune` in another folder") from err
    return file
