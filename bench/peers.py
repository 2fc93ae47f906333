"""Other engines (peers), each in its own process and environment.

Environments are made on demand in the cache, from exact versions. A peer runs on one core with one thread, so that CPU
times can be compared; `adapters/json_server.py` defines the protocol. `python -m bench.peers` makes all environments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench import cache

ADAPTERS = Path(__file__).parent / "adapters"
ROOT = Path(__file__).parents[1]
CORE_VARIABLE = (
    "DOWSE_BENCH_CORE"  # all measured processes share this core in turns, so that other load affects all alike
)
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
ONE_THREAD |= {"TOKENIZERS_PARALLELISM": "false"}  # not LANCE_CPU_THREADS: with 1, LanceDB 0.40 deadlocks
QUIET = {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "HAYSTACK_TELEMETRY_ENABLED": "False"}
QUIET |= {
    "LANCE_LOG": "error",
    "PYTHONWARNINGS": "ignore",
}  # LanceDB logs a deprecation at every query, which costs time


@dataclass(frozen=True)
class Peer:
    """Engine under test."""

    name: str
    script: str  # below adapters/
    environment: str  # a folder of the cache; "" is the environment that runs the benchmark
    requirements: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


_TORCH = "torch==2.13.0"  # the CPU build, if pip is configured for it; never a dependency of Dowse
_WORDS = ("rank-bm25==0.2.2", "bm25s==0.3.16", "tantivy==0.27.0", "PyStemmer", "numpy")
_FAISS = ("faiss-cpu==1.15.1", "numpy")
_LANCE = ("lancedb==0.40.0", "numpy")
_CHROMA = ("chromadb==1.5.9", "numpy")

DOWSE = Peer("dowse", "dowse_engine.py", "")
LANCE = Peer("lancedb", "lancedb_engine.py", "lancedb", _LANCE)
SPEED = (
    LANCE,
    Peer("rank_bm25", "word_engines.py", "words", _WORDS, ("rank_bm25",)),
    Peer("bm25s", "word_engines.py", "words", _WORDS, ("bm25s",)),
    Peer("tantivy", "word_engines.py", "words", _WORDS, ("tantivy",)),
    Peer("sqlite-fts5", "word_engines.py", "words", _WORDS, ("fts5",)),
    Peer("faiss-flat", "vector_engines.py", "faiss", _FAISS, ("faiss-flat",)),
    Peer("faiss-hnsw", "vector_engines.py", "faiss", _FAISS, ("faiss-hnsw",)),
    Peer("chroma", "vector_engines.py", "chroma", _CHROMA, ("chroma",)),
)
SENTENCE = Peer("sentence-transformers", "sentence_encoder.py", "sentence", (_TORCH, "sentence-transformers"))


class PeerProcess:
    """Running peer; a context manager that ends the process."""

    def __init__(self, peer: Peer, extra_environment: Mapping[str, str] | None = None) -> None:
        self.peer = peer
        python = environment_python(peer)
        variables = {**os.environ, **ONE_THREAD, **QUIET, **(extra_environment or {})}
        if not peer.environment:
            variables["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        else:
            variables.pop("PYTHONPATH", None)
        command = [str(python), str(ADAPTERS / peer.script), *peer.arguments]
        self._log = cache.folder("logs") / f"{peer.name}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=variables,
                preexec_fn=_on_one_core,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout:
            self._process.stdout.close()

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """Send a request; the reply has `value`, `cpu_s` and `rss_mb`."""
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError(f"{self.peer.name} was started without pipes")
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.peer.name} ended during {do}; see its log {self._log}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def pid(self) -> int:
        return self._process.pid


def _on_one_core() -> None:
    os.sched_setaffinity(0, {int(os.environ.get(CORE_VARIABLE, "0"))})


def environment_python(peer: Peer) -> Path:
    """Return the interpreter of the peer; make its environment on first use."""
    if not peer.environment:
        return Path(sys.executable)
    place = cache.folder("venvs") / peer.environment
    python = place / "bin" / "python"
    ready = place / "requirements.txt"
    wanted = "\n".join(peer.requirements)
    if not ready.exists() or ready.read_text("utf-8") != wanted:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for requirement in peer.requirements[:1], peer.requirements:  # torch first, else pip takes a newer one
            subprocess.run([*install, *requirement], check=True)
        ready.write_text(wanted, "utf-8")
    return python


def main() -> None:
    from bench.quality import QUALITY

    for peer in (*SPEED, SENTENCE, *QUALITY):
        print(f"{peer.name:24} {environment_python(peer)}")


if __name__ == "__main__":
    main()
