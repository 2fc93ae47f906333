"""Embedder over HTTP: unit vectors from an OpenAI-compatible `/embeddings` endpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from dowse.models.checks import plain, unit_rows
from dowse.models.endpoint import Endpoint, Patience
from dowse.models.onnx.recipe import known_prefixes
from dowse.ports import Matrix
from dowse.types import Role

KEY_VARIABLE = "DOWSE_EMBEDDER_API_KEY"
BATCH = 64  # texts a request; chosen: every server tried accepts it
LONGEST_CHARACTERS = 8_000  # about 2,000 tokens; chosen: below the limit of the common models, which refuse more
TIMEOUT_S = 30.0
ATTEMPTS = 4
QUERY_S = 10.0  # of a query, all attempts together; chosen: people wait no longer


class HttpEmbedder:
    """`dowse.ports.Embedder` of an HTTP endpoint. The key is sent there and appears nowhere else."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = Endpoint.under(
            base_url, "/embeddings", "embedding endpoint", api_key=api_key, key_variable=KEY_VARIABLE, sleep=sleep
        )
        self._name = model
        self.model = f"{model}@{self._endpoint.host}"
        self._patience = Patience(timeout_s, attempts=ATTEMPTS)
        self._query_prefix, self._chunk_prefix = known_prefixes(model)
        self._dimension: int | None = None
        self._lock = Lock()

    @property
    def dimension(self) -> int:
        """Length of a vector; found once by embedding a word."""
        with self._lock:
            if self._dimension is None:
                self._dimension = len(self._request(["dimension"], "query")[0])
            return self._dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        prefix = self._query_prefix if role == "query" else self._chunk_prefix
        # Servers refuse an empty text but accept a blank.
        cut = [plain((prefix + text)[:LONGEST_CHARACTERS]) or " " for text in texts]
        rows = [row for at in range(0, len(cut), BATCH) for row in self._request(cut[at : at + BATCH], role)]
        found = rows or np.empty((0, self.dimension))
        return unit_rows(found, rows=len(cut), dimension=self.dimension, model=self.model)

    def _request(self, texts: Sequence[str], role: Role) -> list[Any]:
        """Embed the texts; an endpoint may reply in another order and then numbers the rows."""
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        own = self._patience
        patience = own if role == "chunk" else Patience(min(own.attempt_s, QUERY_S), QUERY_S, own.attempts)
        data, count = self._endpoint.post(body, patience).data, len(texts)
        try:
            items = json.loads(data)["data"]
            rows = {int(item.get("index", place)): item["embedding"] for place, item in enumerate(items)}
            ordered = [rows[place] for place in range(count)]
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise self._endpoint.failure(
                f"did not reply with {count} embeddings ({type(err).__name__}: {err})"
            ) from err
        lengths = {len(row) if isinstance(row, list) else 0 for row in ordered}
        if len(items) != count or len(lengths) != 1 or 0 in lengths:
            raise self._endpoint.failure(f"sent {len(items)} rows of lengths {sorted(lengths)} for {count} texts")
        return ordered
