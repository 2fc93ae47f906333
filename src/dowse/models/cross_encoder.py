"""Reranker with a local BERT-like cross-encoder: scores of a query and its candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import exp
from pathlib import Path

import numpy as np

from dowse.config import default_models_folder
from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.identity import embedded_text
from dowse.models import registry
from dowse.models.checks import CHARACTERS_PER_TOKEN, in_threads, plain
from dowse.models.choose import NONE, PATH_STARTS, on_this_machine
from dowse.models.onnx.graph_builder import pair_graph
from dowse.models.onnx.prepared import Encoder, PreparedModel
from dowse.models.onnx.quantise import graph_tensors
from dowse.models.onnx.recipe import identity
from dowse.models.onnx.weights import FolderWeights, open_weights
from dowse.ports import Candidate, Reporter

DEFAULT = registry.RERANKERS[0].hub_id
MAX_TOKENS = 512  # of a pair; the models of this family were trained with it
_STEEPEST = 700.0  # e^710 is beyond a float


def open_cross_encoder(
    spec: str, *, models_folder: Path, threads: int = 1, allow_fetch: bool = True, progress: Reporter | None = None
) -> CrossEncoderReranker | None:
    """Open the reranker that `spec` names: a folder, or a hub id that is fetched once; None for `none`."""
    spec = spec.strip()
    if spec in ("", NONE):
        return None
    folder = _located(spec, models_folder, progress, allow_fetch=allow_fetch)
    return CrossEncoderReranker(folder, folder.resolve().name if Path(spec).is_dir() else spec, threads=threads)


def _located(spec: str, models_folder: Path, progress: Reporter | None = None, *, allow_fetch: bool = True) -> Path:
    """Return the folder of a model, whose files have the hashes that were recorded when they were fetched."""
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    if spec.startswith(PATH_STARTS):
        raise NotFoundError(f"no model folder {folder}; set DOWSE_RERANKER to an existing folder or a hub id")
    if not registry.HUB_ID.fullmatch(spec):
        raise BadRequestError(f"reranker {spec!r} is neither a folder nor a hub id; try {DEFAULT}")
    return registry.unchanged(on_this_machine(spec, models_folder, progress, allow_fetch=allow_fetch))


class CrossEncoderReranker:
    """`dowse.ports.Reranker` of a local model that reads query and passage together: a folder, or a hub id to fetch.

    A passage that is too long is cut; the query is cut only if it alone fills half the window. One output is mapped
    to [0,1] by 1/(1 + e^−logit), which keeps the order; two outputs by their difference.
    """

    def __init__(
        self,
        model_path: Path | str | None = None,
        name: str | None = None,
        *,
        models_folder: Path | None = None,
        threads: int = 1,
        exact: bool = False,
        max_tokens: int = MAX_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from tokenizers import Tokenizer

        if not isinstance(model_path, Path):
            name = name or model_path or DEFAULT
            model_path = _located(str(model_path or DEFAULT), models_folder or default_models_folder())
        folder = model_path
        weights = open_weights(folder)
        if not isinstance(weights, FolderWeights):
            raise BadRequestError(f"{folder} holds an embedding model, not a cross-encoder; try {DEFAULT}")
        self.model = identity(folder, name or folder.resolve().name)  # scores are cached by it
        head = weights.pair_head()
        labels = len(head["classifier.bias"])
        if labels not in (1, 2):
            raise BadRequestError(f"{folder} has {labels} outputs; a reranker has 1 or 2. Try {DEFAULT}")
        tensors = graph_tensors(weights, exact=exact)
        tensors |= {name: np.require(array.T, requirements=["C", "A"]) for name, array in head.items()}
        self._encoder = Encoder(weights, PreparedModel(pair_graph(weights.shape, labels, exact=exact), tensors))
        self._shift = weights.type_shift()
        self._threads = max(1, threads)
        self._clock = clock
        self._tokens = min(max_tokens, self._encoder.longest)
        try:
            self._tokenizer = Tokenizer.from_buffer(weights.tokenizer_json)
        except ValueError as err:
            raise ModelUnavailableError(f"tokenizer in {folder} cannot be read ({err}); download it again") from err
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> list[float | None]:
        """Score candidates in the given order: when time runs out, the best ones have a score."""
        ends_s = None if timeout_s is None else self._clock() + timeout_s
        question = self._cut(query)

        def score(candidate: Candidate) -> float | None:
            late = ends_s is not None and self._clock() >= ends_s
            return None if late else self._score(question, embedded_text(candidate.chunk))

        return in_threads(score, candidates, self._threads)

    def rerank(self, query: str, candidates: Sequence[Candidate], top_k: int | None = None) -> list[Candidate]:
        """Sort and trim the candidates; `Candidate.value` is the new score."""
        return self.rerank_many([(query, candidates)], top_k)[0]

    def rerank_many(
        self, questions: Sequence[tuple[str, Sequence[Candidate]]], top_k: int | None = None
    ) -> list[list[Candidate]]:
        """Rerank the candidates of several questions in one batch."""
        pairs = [(self._cut(query), embedded_text(each.chunk)) for query, found in questions for each in found]
        scores = iter(in_threads(lambda pair: self._score(*pair), pairs, self._threads))
        found = [
            [Candidate(each.chunk, next(scores), each.value, each.source) for each in candidates]
            for _, candidates in questions
        ]
        return [sorted(each, key=lambda candidate: -candidate.value)[:top_k] for each in found]

    def _score(self, query: str, passage: str) -> float:
        pair = self._tokenizer.encode(query, plain(passage[: self._tokens * CHARACTERS_PER_TOKEN]))
        kept = self._kept(pair.sequence_ids)
        ids, types = np.array(pair.ids)[kept], np.array(pair.type_ids, np.float32)[kept]
        logits = self._encoder.run(ids, types[:, None] * self._shift).tolist()
        logit = logits[0] if len(logits) == 1 else logits[1] - logits[0]
        return 1 / (1 + exp(-max(-_STEEPEST, min(logit, _STEEPEST))))

    def _kept(self, sequences: Sequence[int | None]) -> list[int]:
        """Return the positions that stay when the last tokens of the passage are cut (`only_second`)."""
        excess = max(len(sequences) - self._tokens, 0)
        passage = [at for at, sequence in enumerate(sequences) if sequence == 1]
        dropped = set(passage[len(passage) - excess :])
        return [at for at in range(len(sequences)) if at not in dropped]

    def _cut(self, query: str) -> str:
        """Cut the query to half the window, so that part of the passage fits."""
        query = plain(query[: self._tokens * CHARACTERS_PER_TOKEN])
        alone = self._tokenizer.encode(query, add_special_tokens=False)
        most = self._tokens // 2
        return query if len(alone.ids) <= most else query[: alone.offsets[most - 1][1]]
