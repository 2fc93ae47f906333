"""A prompt and a schema go in, JSON from any OpenAI-compatible chat endpoint comes out; each prompt is asked once."""

from __future__ import annotations

import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from dowse.errors import BadRequestError, DeadlineError
from dowse.models.checks import plain
from dowse.models.endpoint import Endpoint, Patience
from dowse.models.reply import json_value

KEY_VARIABLE = "DOWSE_LLM_API_KEY"
ATTEMPTS = 3  # chosen: a query waits for this
CACHED_REPLIES = 512  # chosen; a reply is some hundred bytes
# A server that does not know a field of the request answers one of these.
_NOT_UNDERSTOOD = frozenset({400, 422})
_FINE = frozenset({200})


def open_llm(base_url: str | None, model: str | None, *, api_key: str | None = None) -> HttpLLM | None:
    """The configured language model; None when there is none. The key may also stand in DOWSE_LLM_API_KEY."""
    if not base_url and not model:
        return None
    if not base_url:
        raise BadRequestError(
            f"a language model {model!r} is set, but no endpoint; type: dowse config set llm_base_url https://host/v1"
        )
    if not model:
        raise BadRequestError(
            f"a language model's endpoint {base_url} is set, but no model; type: dowse config set llm_model NAME"
        )
    return HttpLLM(base_url, model, api_key=api_key or os.environ.get(KEY_VARIABLE, "").strip() or None)


class HttpLLM:
    """Satisfies `dowse.ports.LLM`. Safe for several threads."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        cached_replies: int = CACHED_REPLIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        what = "LLM endpoint"
        endpoint = Endpoint.under(base_url, "/chat/completions", what, api_key=api_key, key_variable=KEY_VARIABLE)
        self._endpoint = replace(endpoint, sleep=sleep)
        self._name = model
        self._replies: OrderedDict[tuple[str, str, str, int], str] = OrderedDict()
        self._limit = cached_replies
        self._bare = False  # whether the server takes nothing but model and messages
        self._lock = Lock()

    @property
    def model(self) -> str:
        return f"{self._name}@{self._endpoint.host}"

    def complete_json(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, *, max_tokens: int) -> Any:
        # The text is kept and not the value, which a caller might change.
        key = (self.model, prompt, json.dumps(schema, sort_keys=True), max_tokens)
        text = self._remembered(key)
        if text is not None:
            return json_value(text, schema)
        if timeout_s <= 0:
            raise DeadlineError(f"no time is left to ask the language model {self.model}; allow more with --deadline")
        text = self._ask(prompt, schema, timeout_s, max_tokens)
        try:
            value = json_value(text, schema)
        except ValueError as err:
            raise self._endpoint.failure(f"wrote {' '.join(text.split())[:80]!r}: {err}") from err
        self._remember(key, text)
        return value

    def _ask(self, prompt: str, schema: Mapping[str, Any], timeout_s: float, max_tokens: int) -> str:
        """The reply's text. A server that refuses the full request is asked with the bare one from then on."""
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
        self._bare = True  # only now: a request that is refused either way says nothing about its fields
        return text

    def _content(self, data: bytes) -> str:
        try:
            choice = json.loads(data)["choices"][0]
            content = choice["message"]["content"]
            cut_off = choice.get("finish_reason") == "length"
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
            raise self._endpoint.failure(f"did not answer as a chat endpoint ({type(err).__name__}: {err})") from err
        if cut_off:
            raise self._endpoint.failure("stopped in the middle of its reply")
        if isinstance(content, list):  # in parts, as some servers write it
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if not isinstance(content, str) or not content.strip():
            raise self._endpoint.failure("wrote nothing")
        return content

    def _remembered(self, key: tuple[str, str, str, int]) -> str | None:
        with self._lock:
            if key not in self._replies:
                return None
            self._replies.move_to_end(key)
            return self._replies[key]

    def _remember(self, key: tuple[str, str, str, int], text: str) -> None:
        with self._lock:
            self._replies[key] = text
            self._replies.move_to_end(key)
            while len(self._replies) > self._limit:
                self._replies.popitem(last=False)


def _patience(ends_s: float) -> Patience:
    left_s = ends_s - time.monotonic()
    return Patience(left_s, left_s, ATTEMPTS)
