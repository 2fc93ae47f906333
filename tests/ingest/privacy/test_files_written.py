"""Secrets in every file that commands write: index, caches, settings, logs, temporary files, and their output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRETS = {
    "settings.py": ('password = "{}"\n', "Vq8rTz3LmX0pWk"),
    "app.env": ("DB_PASSWORD={}\n", "nB7yHs2QeJ9dUf"),
    "deploy.yaml": ("kind: Secret\nstringData:\n  plain: {}\n", "Gx4cRw6ZaM1vTo"),
    "broken.json": ('{{"client_secret": "{}", \n', "Pj5kLd8SnE2iYb"),
    "broken.ipynb": ('{{"cells": [{{"source": "api_token = \'{}\'"', "Wm3tFv7XqC0hRg"),
    "runbook.md": ("# Login\n\nuse postgres://app:{}@db/app\n", "Kz9uNx1BoA6wSe"),
}
IN_NAME = "AKIA" + "QWERTYUIOP7ASDFG"


def run(tmp_path: Path, *arguments: str, code: int | None = 0) -> bytes:
    """Run a command whose home, caches and temporary files lie in the test's folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DOWSE_", "XDG_"))}
    env |= {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary"), "DOWSE_EMBEDDER": "hash"}
    command = [sys.executable, "-m", "dowse", *arguments]
    done = subprocess.run(command, cwd=tmp_path / "project", env=env, capture_output=True, stdin=subprocess.DEVNULL)
    assert code is None or done.returncode == code, done.stderr.decode()
    return done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_no_file_and_no_output_holds_a_planted_secret(tmp_path: Path, workers: str) -> None:
    project = tmp_path / "project"
    for folder in (project, tmp_path / "home", tmp_path / "temporary"):
        folder.mkdir()
    planted = set()
    for name, (text, secret) in SECRETS.items():
        (project / name).write_text(text.format(secret))
        planted.add(project / name)
    named = project / f"dump-{IN_NAME}.txt"
    named.write_text("an ordinary text about invoices\n")
    planted.add(named)
    shown = run(tmp_path, "index", ".", "--workers", workers, code=None)
    for arguments in (
        ("search", "password", "--json"),
        ("search", "login database", "--explain"),
        ("search", "invoices", "--json"),
        ("search", "x", "--path", "[", "--json"),
        ("read", "missing.py:3"),
        ("status", "--json"),
        ("doctor",),
        ("backup", str(tmp_path / "saved.dowse")),
        ("rebuild",),
    ):
        shown += run(tmp_path, *arguments, code=None)
    secrets = [secret.encode() for _, secret in SECRETS.values()]
    secrets.append(IN_NAME.encode())
    found: dict[bytes, list[str]] = {secret: [] for secret in secrets}
    for path in tmp_path.rglob("*"):
        if path.is_file() and path not in planted:
            data = path.read_bytes()
            for each in secrets:
                if each in data:
                    found[each].append(str(path.relative_to(tmp_path)))
    assert {secret: files for secret, files in found.items() if files} == {}
    assert [secret for secret in secrets if secret in shown] == []
    assert (tmp_path / "saved.dowse").exists()
    assert b"dump-[masked].txt: skipped: its path contains a secret" in " ".join(shown.decode().split()).encode()
