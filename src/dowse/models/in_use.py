"""Which embedder to use: what was asked for and what the index has go in, an open embedder comes out, opened once."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from dowse.errors import ModelUnavailableError
from dowse.ports import Embedder, Reporter

AUTO = "auto"
NONE = "none"
SPEC = "embedder of "  # + a model's name: the fact by which an index remembers how to open it


class Models:
    """Opens lazily and remembers; weights are fetched when they are first needed."""

    def __init__(self, wanted: Embedder | str, models_folder: Path, threads: int) -> None:
        self._wanted = wanted
        self._folder = models_folder
        self._threads = threads
        self._opened: dict[str, Embedder] = {}
        self._lock = Lock()

    @property
    def spec(self) -> str | None:
        """What was asked for by name, in a form that opens the same model from any folder."""
        if not isinstance(self._wanted, str) or self._wanted in (AUTO, NONE):
            return None
        path = Path(self._wanted).expanduser()
        return str(path.absolute()) if path.exists() else self._wanted

    def for_index(self, spec: str | None, report: Reporter | None = None) -> Embedder | None:
        """The embedder for an index whose vectors were made by `spec`, or that has none yet. None: words alone."""
        if not isinstance(self._wanted, str):
            return self._wanted
        if self._wanted == NONE:
            return None
        from dowse.models.registry import DEFAULT

        return self._open((spec or DEFAULT) if self._wanted == AUTO else self._wanted, report)

    def required(self, report: Reporter | None = None) -> Embedder:
        found = self.for_index(None, report)
        if found is None:
            raise ModelUnavailableError("no embedding model was named; `dowse models list` shows what there is")
        return found

    def _open(self, spec: str, report: Reporter | None) -> Embedder | None:
        from dowse.models import open_embedder

        with self._lock:
            if spec not in self._opened:
                found = open_embedder(spec, models_folder=self._folder, threads=self._threads, progress=report)
                if found is None:
                    return None
                self._opened[spec] = found
            return self._opened[spec]
