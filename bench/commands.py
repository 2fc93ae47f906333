"""Benchmark of commands in a new process: CPU time, imports and installed size."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import cache, corpus, peers
from dowse.config import Config
from dowse.models import fetch

MAIN = "from dowse.__main__ import main; main()"
FINE = (0, 1)  # hits, no hits
NOT_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")  # in every environment
TOKENS = (180, 220)  # about 200
MINILM = "all-MiniLM-L6-v2"
SENTENCE_BATCH = 32  # its default


def cpu_s(arguments: Sequence[str], times: int, variables: Mapping[str, str] | None = None) -> float:
    """Measure CPU seconds of `dowse ARGUMENTS` in a new process, user and system, all threads.

    The least of several runs: what is above it is the neighbours' use of the shared core and its caches.
    """
    # As in an installed package: byte code exists, even where the tree is read-only.
    compiled = {"PYTHONPATH": str(peers.ROOT / "src"), "PYTHONPYCACHEPREFIX": str(cache.folder("bytecode"))}
    environment = os.environ | compiled | dict(variables or {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    spent = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", MAIN, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode not in FINE:
            raise SystemExit(f"`dowse {' '.join(arguments)}` failed ({done.returncode}): {done.stderr.strip()}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(spent)


def models_folder() -> Path:
    return Config.load(Path.cwd(), os.environ).models_folder


def minilm() -> Path:
    """Return the folder with its weights and tokenizer; fetch it if needed."""
    return fetch.pull(MINILM, models_folder())


def embedding_texts(texts: Sequence[str], count: int) -> list[str]:
    """Return texts of about 200 tokens."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    fitting = (text for text in texts if TOKENS[0] <= len(tokenizer.encode(text).ids) <= TOKENS[1])
    return [text for text, _ in zip(fitting, range(count), strict=False)]


def real_files(count: int) -> Path:
    """Write the first files of the corpus into a folder, as in their packages."""
    place = cache.folder(f"files-{corpus.LAYOUT}-{count}")
    if not (place / "whole").exists():
        for file, _ in zip(corpus.files(), range(count), strict=False):
            path = place / file.source / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        (place / "whole").touch()
    return place


def install_mb() -> float:
    """Measure an environment after `pip install .`.

    It is created each time, because the tree may have changed.
    """
    shutil.rmtree(cache.folder("venvs") / "core", ignore_errors=True)
    python = peers.environment_python(peers.Peer("core", "", "core", (str(peers.ROOT),)))
    packages = next(python.parents[1].glob("lib/python3*/site-packages"))
    found = [each for each in packages.iterdir() if not each.name.startswith(NOT_OURS)]
    return sum(cache.size_bytes(each) if each.is_dir() else each.stat().st_size for each in found) / 1e6
