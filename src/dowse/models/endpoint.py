"""Client of an OpenAI-compatible endpoint: posts JSON, with retries and a deadline.

A socket timeout alone is no limit: it restarts with every byte, so a slow reply may never end. Each attempt therefore
runs in a thread of its own, which is abandoned when its time is over.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Any

import msgspec

from dowse.errors import BadRequestError, DeadlineError, ModelUnavailableError
from dowse.trust import parse_server

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})  # 529: "overloaded", of some vendors
LARGEST_REPLY_BYTES = 32 * 1024**2  # chosen: ten times the largest batch of embeddings
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 20.0  # chosen
_BLOCK_BYTES = 65_536
_PRINTABLE = re.compile(r"[!-~]+")


class Patience(msgspec.Struct, frozen=True):
    """Limits of time and attempts."""

    attempt_s: float  # for one attempt, from connecting to the last byte
    total_s: float | None = None  # for all attempts and pauses; None: no limit
    attempts: int = 4


class Reply(msgspec.Struct, frozen=True):
    """Response of an endpoint."""

    status: int
    data: bytes
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Endpoint:
    """Address that JSON is posted to. The key is sent there and appears nowhere else: `repr` hides it."""

    what: str  # "embedding endpoint": begins every message
    url: str
    api_key: str | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def under(
        cls,
        base_url: str,
        path: str,
        what: str,
        *,
        api_key: str | None,
        key_variable: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Endpoint:
        """Make the endpoint `path` below `base_url`; a query string stays at the end."""
        address = parse_server(base_url)
        if address is None:
            raise BadRequestError(f"{base_url!r} is not the address of an {what}; write it as https://host/v1")
        parts = urllib.parse.urlsplit(address.text)
        if api_key and not _PRINTABLE.fullmatch(api_key):  # the HTTP library would print it in its error
            raise BadRequestError(f"the key of the {what} has a space or non-ASCII character; check {key_variable}")
        whole = parts._replace(path=parts.path.rstrip("/") + path, fragment="")
        return cls(what, whole.geturl(), api_key, sleep)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc

    def post(
        self, body: Mapping[str, Any], patience: Patience, *, expected: frozenset[int] = frozenset({200})
    ) -> Reply:
        """Post JSON, retry transient failures; return an expected reply, or ModelUnavailable or DeadlineError."""
        data = json.dumps(body).encode()
        ends_s = None if patience.total_s is None else time.monotonic() + patience.total_s
        problem, cause = "received no request", None
        for attempt in range(1, patience.attempts + 1):
            attempt_s = patience.attempt_s if ends_s is None else min(patience.attempt_s, ends_s - time.monotonic())
            if attempt_s <= 0:
                break
            asked_s = None
            try:
                reply = _in_time(partial(self._exchange, data, attempt_s), attempt_s)
            except (OSError, http.client.HTTPException) as err:  # refused, reset, timed out, cut off
                reason = "timed out" if isinstance(err, TimeoutError) else str(err) or type(err).__name__
                problem, cause = f"does not reply ({reason})", err
            else:
                if reply.status in expected:
                    return reply
                start = " ".join(reply.data[:2_000].decode("utf-8", "replace").split())[:200]
                problem, cause, asked_s = f"replies {reply.status}: {start or 'nothing'}", None, reply.retry_after_s
                if reply.status not in TRANSIENT:
                    break
            pause_s = _pause_s(attempt, asked_s)
            if attempt == patience.attempts or (ends_s is not None and time.monotonic() + pause_s >= ends_s):
                break
            self.sleep(pause_s)
        if ends_s is not None and time.monotonic() >= ends_s:
            raise DeadlineError(self._message(f"has not replied in {patience.total_s:g} s; it {problem}")) from cause
        raise self.failure(problem) from cause

    def failure(self, problem: str) -> ModelUnavailableError:
        return ModelUnavailableError(self._message(problem))

    def _message(self, problem: str) -> str:
        address = self.url.partition("?")[0]
        text = f"{self.what} {address} {problem}; check the address and the model, then retry"
        return text.replace(self.api_key, "…") if self.api_key else text

    def _exchange(self, data: bytes, limit_s: float) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "dowse"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        request = urllib.request.Request(self.url, data, headers, method="POST")
        ends_s = time.monotonic() + limit_s
        try:
            response = urllib.request.build_opener(_NoRedirect).open(request, timeout=limit_s)
        except urllib.error.HTTPError as err:
            with err:
                asked = (err.headers.get("Retry-After") or "").strip() if err.headers else ""
                return Reply(err.code, err.read(_BLOCK_BYTES), float(asked) if asked.isdecimal() else None)
        with response:
            return Reply(response.status, _read(response, ends_s))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that refuses redirects: they would send the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _read(response: http.client.HTTPResponse, ends_s: float) -> bytes:
    """Read the body in blocks, so that an endless one meets the limit of time or size."""
    data = bytearray()
    while block := response.read1(_BLOCK_BYTES):
        data += block
        if len(data) > LARGEST_REPLY_BYTES:
            raise http.client.HTTPException(f"more than {LARGEST_REPLY_BYTES:,} bytes")
        if time.monotonic() > ends_s:
            raise TimeoutError("the reply does not end")
    if response.length:  # announced and not received
        raise http.client.IncompleteRead(bytes(data), response.length)
    return bytes(data)


def _in_time(work: Callable[[], Reply], limit_s: float) -> Reply:
    """Run `work` in a daemon thread; TimeoutError after the limit. A late thread ends by itself."""
    future: Future[Reply] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except (OSError, http.client.HTTPException) as err:
            future.set_exception(err)
        finally:
            if not future.done():  # a bug: the thread prints its traceback
                future.set_exception(RuntimeError("an attempt ended without a result"))

    Thread(target=run, name="dowse-endpoint", daemon=True).start()
    return future.result(limit_s)


def _pause_s(attempt: int, asked_s: float | None) -> float:
    """Return the pause that the server requests, else one that doubles from 0.5 s, with jitter."""
    if asked_s is not None:
        return min(asked_s, _LONGEST_PAUSE_S)
    pause_s: float = min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
    return pause_s * random.uniform(0.5, 1.0)
