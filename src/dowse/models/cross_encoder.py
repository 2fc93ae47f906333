"""Reranker with a local BERT-like cross-encoder: scores of a query and its candidates."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path

from dowse.config import default_models_folder
from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.identity import embedded_text
from dowse.models import registry
from dowse.models.checks import plain
from dowse.models.choose import NONE, PATH_STARTS, on_this_machine
from dowse.models.onnx.encoder import PairEncoder
from dowse.models.onnx.weights import FolderWeights, open_weights
from dowse.ports import Candidate, Reporter

DEFAULT = registry.RERANKERS[0].hub_id
MAX_TOKENS = 512  # of a pair; the models of this family were trained with it
_CHARACTERS_PER_TOKEN = 32  # cut before tokenising, as for embedding
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
        self.model = _identity(folder, name or folder.resolve().name)
        self._encoder = PairEncoder(weights, exact=exact)
        if self._encoder.labels not in (1, 2):
            raise BadRequestError(f"{folder} has {self._encoder.labels} outputs; a reranker has 1 or 2. Try {DEFAULT}")
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
        return self.score_pairs([(query, embedded_text(each.chunk)) for each in candidates], timeout_s=timeout_s)

    def score_pairs(self, pairs: Sequence[tuple[str, str]], *, timeout_s: float | None = None) -> list[float | None]:
        """Score pairs of several queries in one batch; None for pairs that the deadline cut off."""
        ends_s = None if timeout_s is None else self._clock() + timeout_s
        questions = {query: self._cut(query) for query, _ in pairs}

        def score(pair: tuple[str, str]) -> float | None:
            late = ends_s is not None and self._clock() >= ends_s
            return None if late else self._score(questions[pair[0]], pair[1])

        if self._threads == 1 or len(pairs) < 2:
            return [score(pair) for pair in pairs]
        with ThreadPoolExecutor(min(self._threads, len(pairs))) as pool:
            return list(pool.map(score, pairs))

    def rerank(self, query: str, candidates: Sequence[Candidate], top_k: int | None = None) -> list[Candidate]:
        """Sort and trim the candidates; `Candidate.value` is the new score."""
        return self.rerank_many([(query, candidates)], top_k)[0]

    def rerank_many(
        self, questions: Sequence[tuple[str, Sequence[Candidate]]], top_k: int | None = None
    ) -> list[list[Candidate]]:
        """Rerank the candidates of several questions in one batch."""
        pairs = [(query, embedded_text(each.chunk)) for query, candidates in questions for each in candidates]
        scores = iter(self.score_pairs(pairs))
        found = [
            [Candidate(each.chunk, next(scores) or 0.0, each.value, each.source) for each in candidates]
            for _, candidates in questions
        ]
        return [sorted(each, key=lambda candidate: -candidate.value)[:top_k] for each in found]

    def _score(self, query: str, passage: str) -> float:
        pair = self._tokenizer.encode(query, plain(passage[: self._tokens * _CHARACTERS_PER_TOKEN]))
        kept = self._kept(pair.sequence_ids)
        ids, types = pair.ids, pair.type_ids
        logits = self._encoder.run_pair([ids[at] for at in kept], [types[at] for at in kept]).tolist()
        return _sigmoid(logits[0] if len(logits) == 1 else logits[1] - logits[0])

    def _kept(self, sequences: Sequence[int | None]) -> list[int]:
        """Return the positions that stay when the last tokens of the passage are cut (`only_second`)."""
        excess = max(len(sequences) - self._tokens, 0)
        passage = [at for at, sequence in enumerate(sequences) if sequence == 1]
        dropped = set(passage[len(passage) - excess :])
        return [at for at in range(len(sequences)) if at not in dropped]

    def _cut(self, query: str) -> str:
        """Cut the query to half the window, so that part of the passage fits."""
        query = plain(query[: self._tokens * _CHARACTERS_PER_TOKEN])
        alone = self._tokenizer.encode(query, add_special_tokens=False)
        most = self._tokens // 2
        return query if len(alone.ids) <= most else query[: alone.offsets[most - 1][1]]


def _sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-max(-_STEEPEST, min(logit, _STEEPEST))))


def _identity(folder: Path, name: str) -> str:
    """Return the name with a short hash of config and weight size, by which scores are cached."""
    size = (folder / "model.safetensors").stat().st_size
    digest = hashlib.sha256((folder / "config.json").read_bytes() + str(size).encode()).hexdigest()
    return f"{name}+{digest[:8]}"
