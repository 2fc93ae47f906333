"""The public API passes `mypy --strict` as a user types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_strictly_typed_program_of_a_user_passes_mypy(tmp_path: Path) -> None:
    program = Path(__file__).with_name("typed_user.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, cwd=program.parents[2])
    assert done.returncode == 0, done.stdout
