"""A tokenizer's JSON goes in, the token ids of texts come out; for the first text only what that text needs is loaded.

A whole vocabulary of byte pairs takes 90 ms of CPU to load, which is a fifth of a search in a new process. Byte pairs
are merged within a text, so a token or a merge whose letters do not stand in the text cannot matter to it: a tokenizer
of those that do gives the same ids, and is there in a fraction of the time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Pairs = Mapping[str, NDArray[Any]]

LONGEST = 500  # characters of a text that is worth it; chosen: questions are shorter, and chunks come in numbers
_CHANGED_WORDS = ("byte_fallback", "continuing_subword_prefix", "dropout", "end_of_word_suffix")
_BREAK = "\n"  # between tokens; as a byte it is written Ċ


class Tokens:
    """Safe to share between threads. ValueError where the JSON is no tokenizer."""

    def __init__(self, tokenizer_json: bytes, longest: int, pairs: Pairs | None = None) -> None:
        """Texts are cut to `longest` tokens. `pairs` is what `byte_pairs` made of the JSON."""
        self._json = tokenizer_json
        self._longest = longest
        self._pairs = pairs
        self._lock = Lock()
        self._whole = self._opened(tokenizer_json) if pairs is None else None

    def ids(self, text: str) -> list[int]:
        return self._fitting(text).encode(text).ids

    def _fitting(self, text: str) -> Tokenizer:
        """Whole from the second text on."""
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
    """A tokenizer of byte pairs as arrays; None for one of another kind."""
    import numpy as np

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
    """A tokenizer that gives the same ids for this text."""
    import numpy as np

    written = "".join(map(_letters().__getitem__, text.encode()))
    row = json.loads(pairs["rest"].tobytes())
    always = {each["content"] for each in row["added_tokens"]}
    tokens = pairs["tokens"].tobytes().decode().split(_BREAK)
    held = [at for at, token in enumerate(tokens) if token in written or token in always]
    vocab = {tokens[at]: number for at, number in zip(held, pairs["ids"][held].tolist(), strict=True)}
    known = np.zeros(len(tokens), np.bool_)
    known[held] = True
    merges = pairs["merges"][known[pairs["merges"][:, 2]]]  # what they make is in the text, and so are both parts
    row["model"] |= {"vocab": vocab, "merges": [f"{tokens[a]} {tokens[b]}" for a, b, _ in merges.tolist()]}
    return json.dumps(row).encode()


def _is_byte_pairs(row: Mapping[str, Any]) -> bool:
    """Whether it is a kind for which all of the above is true: bytes become letters, and nothing else is changed."""
    model, before = row.get("model") or {}, row.get("pre_tokenizer") or {}
    vocab = model.get("vocab", {})
    return (
        model.get("type") == "BPE"
        and not any(model.get(each) for each in _CHANGED_WORDS)
        and row.get("normalizer") is None
        and before.get("type") == "ByteLevel"
        and before.get("add_prefix_space") is False
        and all(each["content"] in vocab for each in row["added_tokens"])  # else they are numbered by the vocabulary
        and not any(_BREAK in token for token in vocab)
    )


def _letters() -> list[str]:
    """How GPT-2's byte pairs write each byte: as itself where it can be seen, else as a letter from 256 on."""
    seen = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    other = iter(range(256, 512))
    return [chr(byte if byte in seen else next(other)) for byte in range(256)]
