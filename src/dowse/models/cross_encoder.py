"""A question and candidates go in, how well each answers it comes out, from a local BERT-like cross-encoder."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.identity import embedded_text
from dowse.models.checks import plain
from dowse.models.onnx.encoder import PairEncoder
from dowse.models.onnx.weights import FolderWeights, open_weights
from dowse.ports import Candidate

if TYPE_CHECKING:
    from dowse.ports import Reporter

DEFAULT = "cross-encoder/ms-marco-MiniLM-L-6-v2"  # S0-20
MAX_TOKENS = 512  # of a pair: what the models of this family were trained with
_CHARACTERS_PER_TOKEN = 32  # cut before tokenising, as for embedding
_STEEPEST = 700.0  # e^710 is beyond a float
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def open_cross_encoder(
    spec: str, *, models_folder: Path, threads: int = 1, allow_fetch: bool = True, progress: Reporter | None = None
) -> CrossEncoderReranker | None:
    """The reranker that `spec` names: a folder, or a hub id that is fetched once; None for `none`."""
    spec = spec.strip()
    if spec in ("", "none"):
        return None
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return CrossEncoderReranker(folder, folder.resolve().name, threads=threads)
    if spec.startswith(("/", "./", "../", "~")):
        raise NotFoundError(f"no model folder {folder}; give DOWSE_RERANKER a folder that exists, or a hub id")
    if not _HUB_ID.fullmatch(spec):
        raise BadRequestError(f"reranker {spec!r} is neither a folder nor a hub id; try {DEFAULT}")
    from dowse.models.choose import pull

    folder = models_folder / spec.replace("/", "--")
    if not folder.is_dir():
        if not allow_fetch:
            raise ModelUnavailableError(f"reranker {spec!r} is not on this machine; run `dowse models pull {spec}`")
        folder = pull(spec, models_folder, progress=progress)
    return CrossEncoderReranker(folder, spec, threads=threads)


class CrossEncoderReranker:
    """Satisfies `dowse.ports.Reranker`. Reads question and passage together, so it judges better than vectors can.

    A passage that is too long is cut, the question never is (`only_second`), unless it alone fills half the window.
    One output is mapped to [0,1] by 1/(1 + e^−logit), which keeps the order; two by the difference (C-14, R-43).
    """

    def __init__(
        self,
        folder: Path,
        name: str | None = None,
        *,
        threads: int = 1,
        exact: bool = False,
        max_tokens: int = MAX_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from tokenizers import Tokenizer

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
        """In the order given, so that the best candidates are judged when time runs out."""
        return self.score_pairs([(query, embedded_text(each.chunk)) for each in candidates], timeout_s=timeout_s)

    def score_pairs(self, pairs: Sequence[tuple[str, str]], *, timeout_s: float | None = None) -> list[float | None]:
        """Pairs of several questions in one batch; None for those that were not reached in time."""
        ends_s = None if timeout_s is None else self._clock() + timeout_s
        questions = {query: self._cut(query) for query, _ in pairs}

        def judge(pair: tuple[str, str]) -> float | None:
            if ends_s is not None and self._clock() >= ends_s:
                return None
            return self._judged(questions[pair[0]], pair[1])

        if self._threads == 1 or len(pairs) < 2:
            return [judge(pair) for pair in pairs]
        with ThreadPoolExecutor(min(self._threads, len(pairs))) as pool:
            return list(pool.map(judge, pairs))

    def rerank(self, query: str, candidates: Sequence[Candidate], top_k: int | None = None) -> list[Candidate]:
        """Sorted, trimmed; `Candidate.value` is the new score (S0-20)."""
        scored = zip(candidates, self.score(query, candidates), strict=True)
        judged = [Candidate(each.chunk, score) for each, score in scored if score is not None]
        return sorted(judged, key=lambda each: -each.value)[:top_k]

    def _judged(self, query: str, passage: str) -> float:
        pair = self._tokenizer.encode(query, plain(passage[: self._tokens * _CHARACTERS_PER_TOKEN]))
        kept = self._kept(pair.sequence_ids)
        ids, types = pair.ids, pair.type_ids
        logits = self._encoder.run([ids[at] for at in kept], [types[at] for at in kept]).tolist()
        return _sigmoid(logits[0] if len(logits) == 1 else logits[1] - logits[0])

    def _kept(self, sequences: Sequence[int | None]) -> list[int]:
        """Positions that stay when the passage's last tokens go: `only_second`, whatever the tokenizer is set to."""
        excess = max(len(sequences) - self._tokens, 0)
        passage = [at for at, sequence in enumerate(sequences) if sequence == 1]
        dropped = set(passage[len(passage) - excess :])
        return [at for at in range(len(sequences)) if at not in dropped]

    def _cut(self, query: str) -> str:
        """At most half the window, so that there is a passage to judge."""
        query = plain(query[: self._tokens * _CHARACTERS_PER_TOKEN])
        alone = self._tokenizer.encode(query, add_special_tokens=False)
        most = self._tokens // 2
        return query if len(alone.ids) <= most else query[: alone.offsets[most - 1][1]]


def _sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-max(-_STEEPEST, min(logit, _STEEPEST))))


def _identity(folder: Path, name: str) -> str:
    """The name, with a short hash of the config and the size of the weights: kept scores go by it."""
    size = (folder / "model.safetensors").stat().st_size
    digest = hashlib.sha256((folder / "config.json").read_bytes() + str(size).encode()).hexdigest()
    return f"{name}+{digest[:8]}"
