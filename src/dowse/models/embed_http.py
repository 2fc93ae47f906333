"""Texts go in, unit vectors from an OpenAI-compatible `/embeddings` endpoint come out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from dowse.models.checks import plain, unit_rows
from dowse.models.endpoint import Endpoint, Patience
from dowse.models.onnx.recipe import known_prefixes
from dowse.types import Role

if TYPE_CHECKING:
    from dowse.ports import Matrix

BATCH = 64  # texts a request; chosen: every server we know takes it
LONGEST_CHARACTERS = 8_000  # about 2,000 tokens; chosen: below the limit of the common models, which refuse more
TIMEOUT_S = 30.0
ATTEMPTS = 4


class HttpEmbedder:
    """Satisfies `dowse.ports.Embedder`. The key is sent to the endpoint and appears nowhere else."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key_variable = "DOWSE_EMBEDDER_API_KEY"
        what = "embedding endpoint"
        endpoint = Endpoint.under(base_url, "/embeddings", what, api_key=api_key, key_variable=key_variable)
        self._endpoint = replace(endpoint, sleep=sleep)
        self._name = model
        self._patience = Patience(timeout_s, attempts=ATTEMPTS)
        self._query_prefix, self._chunk_prefix = known_prefixes(model)
        self._dimension: int | None = None
        self._lock = Lock()

    @property
    def model(self) -> str:
        return f"{self._name}@{self._endpoint.host}"

    @property
    def dimension(self) -> int:
        """Asked of the endpoint once, by embedding a word."""
        with self._lock:
            if self._dimension is None:
                self._dimension = len(self._request(["dimension"])[0])
            return self._dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        prefix = self._query_prefix if role == "query" else self._chunk_prefix
        # Servers refuse an empty text, but take a blank.
        cut = [plain((prefix + text)[:LONGEST_CHARACTERS]) or " " for text in texts]
        rows: list[Any] = []
        for start in range(0, len(cut), BATCH):
            rows += self._request(cut[start : start + BATCH])
        return unit_rows(rows or _nothing(self.dimension), rows=len(cut), dimension=self.dimension, model=self.model)

    def _request(self, texts: Sequence[str]) -> list[Any]:
        """One row a text."""
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        return self._rows(self._endpoint.post(body, self._patience).data, len(texts))

    def _rows(self, data: bytes, count: int) -> list[Any]:
        """The vectors in the order of the texts: an endpoint may answer in another, and says so by index."""
        try:
            items = json.loads(data)["data"]
            rows = {int(item.get("index", place)): item["embedding"] for place, item in enumerate(items)}
            ordered = [rows[place] for place in range(count)]
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise self._endpoint.failure(
                f"did not answer with {count} embeddings ({type(err).__name__}: {err})"
            ) from err
        lengths = {len(row) if isinstance(row, list) else 0 for row in ordered}
        if len(items) != count or len(lengths) != 1 or 0 in lengths:
            raise self._endpoint.failure(f"answered {len(items)} rows of lengths {sorted(lengths)} for {count} texts")
        return ordered


def _nothing(dimension: int) -> Any:
    import numpy as np

    return np.empty((0, dimension))
