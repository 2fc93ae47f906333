"""Tokenizer of a model; for the first text it loads only the part of the vocabulary it needs.

A whole vocabulary of byte pairs takes 90 ms of CPU to load, a fifth of a search in a new process. Byte pairs are merged
within a text, so tokens and merges whose letters are not in the text cannot matter: a tokenizer without them gives the
same ids and loads in a fraction of the time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pairs = Mapping[str, NDArray[Any]]
LONGEST = 500  # characters; chosen: queries are shorter, and many chunks justify the whole vocabulary
_CHANGED_WORDS = ("byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix")
_BREAK = "\n"  # between tokens; as a byte it is Ċ


class TokenIds:
    """Tokenizer of a model; safe to share between threads. ValueError for invalid JSON."""

    def __init__(self, tokenizer_json: bytes, longest: int, pairs: Pairs | None = None) -> None:
        """Texts are cut to `longest` tokens. `pairs` is the result of `byte_pairs` for the JSON."""
        self._json = tokenizer_json
        self._longest = longest
        self._pairs = pairs
        self._lock = Lock()
        self._whole = self._opened(tokenizer_json) if pairs is None else None

    def ids(self, text: str) -> list[int]:
        return self._fitting(text).encode(text).ids

    def _fitting(self, text: str) -> Tokenizer:
        """Return a small tokenizer for the first text, the whole one from the second on."""
        if self._whole is not None:
            return self._whole
        with self._lock:
            first, self._pairs = self._pairs, None
            if first is not None and len(text) <= LONGEST:
                return self._opened(small_json(first, text))
            self._whole = self._whole or self._opened(self._json)
            return self._whole

    def _opened(self, tokenizer_json: bytes) -> Tokenizer:
        from tokenizers import Tokenizer

        found = Tokenizer.from_buffer(tokenizer_json)
        found.no_padding()
        found.enable_truncation(self._longest)
        return found


def byte_pairs(tokenizer_json: bytes) -> dict[str, NDArray[Any]] | None:
    """Convert a byte-pair tokenizer to arrays; None for another kind."""
    row = json.loads(tokenizer_json)
    if not _is_byte_pairs(row):
        return None
    model = row["model"]
    vocab = model.pop("vocab")
    place = {token: at for at, token in enumerate(vocab)}
    merges = [each.split(" ") if isinstance(each, str) else each for each in model.pop("merges")]
    return {
        "tokens": np.frombuffer(_BREAK.join(vocab).encode(), np.uint8),
        "ids": np.array(list(vocab.values()), np.int32),
        "merges": np.array([(place[a], place[b], place[a + b]) for a, b in merges], np.int32).reshape(-1, 3),
        "rest": np.frombuffer(json.dumps(row).encode(), np.uint8),
    }


def small_json(pairs: Pairs, text: str) -> bytes:
    """Make a tokenizer that gives the same ids for this text."""
    written = "".join(map(_letters().__getitem__, text.encode()))
    row = json.loads(pairs["rest"].tobytes())
    always = {each["content"] for each in row["added_tokens"]}
    tokens = pairs["tokens"].tobytes().decode().split(_BREAK)
    held = [at for at, token in enumerate(tokens) if token in written or token in always]
    vocab = {tokens[at]: number for at, number in zip(held, pairs["ids"][held].tolist(), strict=True)}
    known = np.zeros(len(tokens), np.bool_)
    known[held] = True
    merges = pairs["merges"][known[pairs["merges"][:, 2]]]  # if the merged token is in the text, both parts are
    row["model"] |= {"vocab": vocab, "merges": [f"{tokens[a]} {tokens[b]}" for a, b, _ in merges.tolist()]}
    return json.dumps(row).encode()


def _is_byte_pairs(row: Mapping[str, Any]) -> bool:
    """Whether the tokenizer only maps bytes to letters and merges them, as `small_json` assumes."""
    model, before = row.get("model") or {}, row.get("pre_tokenizer") or {}
    vocab = model.get("vocab", {})
    return (
        model.get("type") == "BPE"
        and not any(model.get(each) for each in _CHANGED_WORDS)
        and row.get("normalizer") is None
        and before.get("type") == "ByteLevel"
        and before.get("add_prefix_space") is False
        and all(each["content"] in vocab for each in row["added_tokens"])  # else their ids depend on the vocabulary
        and not any(_BREAK in token for token in vocab)
    )


def _letters() -> list[str]:
    """Return the letters of bytes in GPT-2: printable ones as they are, the others from 256 on."""
    seen = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    other = iter(range(256, 512))
    return [chr(byte if byte in seen else next(other)) for byte in range(256)]
