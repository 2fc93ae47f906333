"""Embedder with a local BERT-like model: unit vectors from onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dowse.errors import ModelUnavailableError
from dowse.models.checks import CHARACTERS_PER_TOKEN, in_threads, plain, unit_rows
from dowse.models.onnx.prepared import Encoder, prepared
from dowse.models.onnx.recipe import Recipe
from dowse.models.onnx.tokenizer import TokenIds
from dowse.models.onnx.weights import open_weights
from dowse.ports import Matrix
from dowse.types import Role


class OnnxEmbedder:
    """`dowse.ports.Embedder` of a local model; runs `threads` texts of one call in parallel."""

    def __init__(
        self, path: Path, recipe: Recipe, *, threads: int = 1, exact: bool = False, keep: Path | None = None
    ) -> None:
        """`exact` computes in fp32 instead of int8, for comparison; `keep` caches quantised weights."""
        weights = open_weights(path)
        self._recipe = recipe
        self._threads = max(1, threads)
        self.model = recipe.model
        self.dimension = weights.shape.hidden
        # int8 was checked on BERT-like models; rotary ones run in fp32 until int8 is checked on real weights.
        exact = exact or weights.shape.rotary is not None
        try:
            made = prepared(weights, recipe.pooling, exact=exact, folder=keep)
            self._encoder = Encoder(weights, made)
            self._tokens = min(recipe.max_tokens, self._encoder.longest)
            self._tokenizer = TokenIds(weights.tokenizer_json, self._tokens, made.pairs)
        except ValueError as err:
            raise ModelUnavailableError(
                f"the tokenizer of model {recipe.model!r} in {path} is damaged ({err}); run `dowse models pull`"
            ) from err

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        prefix = self._recipe.prefix(role)
        vectors = in_threads(self._vector, [prefix + text for text in texts], self._threads)
        matrix = np.stack(vectors) if vectors else np.empty((0, self.dimension), np.float32)
        return unit_rows(matrix, rows=len(texts), dimension=self.dimension, model=self.model)

    def _vector(self, text: str) -> NDArray[np.float32]:
        ids = self._tokenizer.ids(plain(text[: self._tokens * CHARACTERS_PER_TOKEN]))
        return self._encoder.run(ids or [0])  # without special tokens an empty text has no ids
