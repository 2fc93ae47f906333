"""Language model over HTTP: JSON replies of an OpenAI-compatible chat endpoint, with a cache."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from threading import Lock
from typing import Any

from dowse.errors import BadRequestError, DeadlineError
from dowse.models.checks import plain
from dowse.models.endpoint import Endpoint, Patience

# Reasoning models print their thoughts first, which may contain drafts of the reply.
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_TYPES: Mapping[str, type] = {"object": dict, "array": list}
LONGEST_CHARACTERS = 200_000  # chosen: a hundred times the longest reply that a stage requests
MOST_STARTS = 1_000  # chosen; every "[" outside JSON costs an attempt


def json_value(text: str, schema: Mapping[str, Any]) -> Any:
    """Find the first value with type and keys of the schema, else of its type, else any; ValueError without one."""
    found = list(json_values(_THOUGHT.sub("", text[:LONGEST_CHARACTERS])))
    if not found:
        raise ValueError("no JSON object or array in it")
    kind = _TYPES.get(schema.get("type", ""), object)
    of_kind = [value for value in found if isinstance(value, kind)]
    required = set(schema.get("required", ()))
    complete = [value for value in of_kind if not isinstance(value, dict) or required <= value.keys()]
    return (complete or of_kind or found)[0]


def json_values(text: str) -> Iterator[Any]:
    """Yield the outermost objects and arrays in order; NaN and infinity become null."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None, strict=False)  # not strict: raw line breaks in strings
    at = 0
    for _ in range(MOST_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        try:
            value, at = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
        else:
            yield value


KEY_VARIABLE = "DOWSE_LLM_API_KEY"
ATTEMPTS = 3  # chosen: a query waits for this
CACHED_REPLIES = 512  # chosen; a reply is some hundred bytes
# Replies of a server that does not know a field of the request.
_NOT_UNDERSTOOD = frozenset({400, 422})
_FINE = frozenset({200})


def open_llm(base_url: str | None, model: str | None, *, api_key: str | None = None) -> HttpLLM | None:
    """Open the configured language model; None without one. The key may also be in DOWSE_LLM_API_KEY."""
    if not base_url and not model:
        return None
    if not base_url:
        raise BadRequestError(
            f"language model {model!r} has no endpoint; run: dowse config set llm_base_url https://host/v1"
        )
    if not model:
        raise BadRequestError(f"LLM endpoint {base_url} has no model; run: dowse config set llm_model NAME")
    return HttpLLM(base_url, model, api_key=api_key or os.environ.get(KEY_VARIABLE, "").strip() or None)


class HttpLLM:
    """`dowse.ports.LLM` of an HTTP endpoint; equal prompts are sent once. Safe for several threads."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = Endpoint.under(
            base_url, "/chat/completions", "LLM endpoint", api_key=api_key, key_variable=KEY_VARIABLE, sleep=sleep
        )
        self._name = model
        self.model = f"{model}@{self._endpoint.host}"
        self._replies: dict[tuple[str, str, str, int], str] = {}  # least recent first
        self._bare = False  # whether the server accepts only model and messages
        self._lock = Lock()

    @property
    def uncached(self) -> HttpLLM:
        """The same model, which asks again."""
        other = copy(self)
        other._replies = {}
        return other

    def complete_json(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, *, max_tokens: int) -> Any:
        # The cache holds the text and not the value, which a caller might change.
        key = (self.model, prompt, json.dumps(schema, sort_keys=True), max_tokens)
        with self._lock:
            text = self._replies.pop(key, None)
            if text is not None:
                self._replies[key] = text  # as the most recent
        if text is not None:
            return json_value(text, schema)
        if timeout_s <= 0:
            raise DeadlineError(f"no time left for the language model {self.model}; raise deadline_s")
        text = self._ask(prompt, schema, timeout_s, max_tokens)
        try:
            value = json_value(text, schema)
        except ValueError as err:
            raise self._endpoint.failure(f"sent {' '.join(text.split())[:80]!r}: {err}") from err
        with self._lock:
            self._replies[key] = text
            while len(self._replies) > CACHED_REPLIES:
                del self._replies[next(iter(self._replies))]
        return value

    def _ask(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, max_tokens: int) -> str:
        """Return the text of the reply. A server that refuses the full request gets the bare one from then on."""
        ends_s = time.monotonic() + timeout_s
        bare: dict[str, Any] = {"model": self._name, "messages": [{"role": "user", "content": plain(prompt)}]}
        if not self._bare:
            full = bare | {
                "temperature": 0,
                "max_tokens": max_tokens,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "schema": schema, "strict": True},
                },
            }
            reply = self._endpoint.post(full, _patience(ends_s), expected=_FINE | _NOT_UNDERSTOOD)
            if reply.status not in _NOT_UNDERSTOOD:
                return self._content(reply.data)
        text = self._content(self._endpoint.post(bare, _patience(ends_s)).data)
        self._bare = True  # only now: if the bare request is refused too, its fields are not the reason
        return text

    def _content(self, data: bytes) -> str:
        try:
            choice = json.loads(data)["choices"][0]
            content = choice["message"]["content"]
            cut_off = choice.get("finish_reason") == "length"
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
            raise self._endpoint.failure(f"did not reply as a chat endpoint ({type(err).__name__}: {err})") from err
        if cut_off:
            raise self._endpoint.failure("cut its reply off at max_tokens")
        if isinstance(content, list):  # some servers send the content in parts
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if not isinstance(content, str) or not content.strip():
            raise self._endpoint.failure("sent an empty reply")
        return content


def _patience(ends_s: float) -> Patience:
    left_s = ends_s - time.monotonic()
    return Patience(left_s, left_s, ATTEMPTS)
