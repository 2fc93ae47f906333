"""A JSON body goes in, what an OpenAI-compatible endpoint answers comes out, tried again while it helps and in time.

The socket's timeout alone is no limit: it starts anew with every byte, so that an answer that drips never ends. Each
attempt therefore runs in a thread of its own, which is left behind when its time is over.
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

from dowse.errors import BadRequestError, DeadlineError, ModelUnavailableError

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})  # 529: "overloaded", of some vendors
LARGEST_REPLY_BYTES = 32 * 1024**2  # chosen: ten times the largest batch of embeddings
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 20.0  # chosen
_BLOCK_BYTES = 65_536
_PRINTABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Patience:
    """How long and how often to try."""

    attempt_s: float  # for one attempt, from connecting to the last byte
    total_s: float | None = None  # for all of them with the pauses between; None: as long as they take
    attempts: int = 4


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    data: bytes
    retry_after_s: float | None = None

    @property
    def said(self) -> str:
        """Its start, on one line."""
        return " ".join(self.data[:2_000].decode("utf-8", "replace").split())[:200] or "nothing"


@dataclass(frozen=True)
class Endpoint:
    """One address that JSON is posted to. The key is sent there and appears nowhere else."""

    what: str  # "embedding endpoint": begins every message
    url: str
    api_key: str | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def under(cls, base_url: str, path: str, what: str, *, api_key: str | None, key_variable: str) -> Endpoint:
        """`path` below `base_url`; a query string stays behind it."""
        try:
            parts = urllib.parse.urlsplit(base_url)
            address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            address = False
        if not address or not _PRINTABLE.fullmatch(base_url):
            raise BadRequestError(f"{base_url!r} is not the address of an {what}; write it as https://host/v1")
        if parts.username or parts.password:
            raise BadRequestError(f"the {what}'s address holds a password; put the key into {key_variable}")
        if api_key and not _PRINTABLE.fullmatch(api_key):  # the HTTP library would show it in its complaint
            raise BadRequestError(
                f"the key of the {what} holds a blank or another sign that no key has; see {key_variable}"
            )
        whole = parts._replace(path=parts.path.rstrip("/") + path, fragment="")
        return cls(what, whole.geturl(), api_key)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc

    def post(
        self, body: Mapping[str, Any], patience: Patience, *, expected: frozenset[int] = frozenset({200})
    ) -> Reply:
        """The reply, whose status is an expected one; raises ModelUnavailableError, or DeadlineError out of time.

        Only failures that may pass are tried again, and there is no pause after the last attempt nor one that would
        outlast the time.
        """
        data = json.dumps(body).encode()
        ends_s = None if patience.total_s is None else time.monotonic() + patience.total_s
        problem, cause = "was not asked", None
        for attempt in range(1, patience.attempts + 1):
            attempt_s = patience.attempt_s if ends_s is None else min(patience.attempt_s, ends_s - time.monotonic())
            if attempt_s <= 0:
                break
            asked_s = None
            try:
                reply = _in_time(partial(self._exchange, data, attempt_s), attempt_s)
            except (OSError, http.client.HTTPException) as err:  # refused, reset, too late, half an answer
                problem, cause = f"does not answer ({_short(err)})", err
            else:
                if reply.status in expected:
                    return reply
                problem, cause, asked_s = f"answers {reply.status}: {reply.said}", None, reply.retry_after_s
                if reply.status not in TRANSIENT:
                    break
            if attempt < patience.attempts and not self._paused(_pause_s(attempt, asked_s), ends_s):
                break
        if ends_s is not None and time.monotonic() >= ends_s:
            raise self.late(f"has not answered in {patience.total_s:g} s; it {problem}") from cause
        raise self.failure(problem) from cause

    def failure(self, problem: str) -> ModelUnavailableError:
        return ModelUnavailableError(self._message(problem))

    def late(self, problem: str) -> DeadlineError:
        return DeadlineError(self._message(problem))

    def _message(self, problem: str) -> str:
        address = self.url.partition("?")[0]
        text = f"{self.what} {address} {problem}; check the address and model, then run `dowse doctor`"
        return text.replace(self.api_key, "…") if self.api_key else text

    def _paused(self, pause_s: float, ends_s: float | None) -> bool:
        """Whether there was time for the pause."""
        if ends_s is not None and time.monotonic() + pause_s >= ends_s:
            return False
        self.sleep(pause_s)
        return True

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
                return Reply(err.code, err.read(_BLOCK_BYTES), _retry_after_s(err.headers))
        with response:
            return Reply(response.status, _read(response, ends_s))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _read(response: http.client.HTTPResponse, ends_s: float) -> bytes:
    """All of it, block by block, so that an answer without end meets a limit of time or of size."""
    data = bytearray()
    while block := response.read1(_BLOCK_BYTES):
        data += block
        if len(data) > LARGEST_REPLY_BYTES:
            raise http.client.HTTPException(f"more than {LARGEST_REPLY_BYTES:,} bytes")
        if time.monotonic() > ends_s:
            raise TimeoutError("the answer does not end")
    if response.length:  # what was announced and did not come
        raise http.client.IncompleteRead(bytes(data), response.length)
    return bytes(data)


def _in_time(work: Callable[[], Reply], limit_s: float) -> Reply:
    """The outcome of `work`, or TimeoutError; a thread that is late ends by itself and holds up no exit."""
    future: Future[Reply] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except (OSError, http.client.HTTPException) as err:
            future.set_exception(err)
        finally:
            if not future.done():  # a bug: its traceback is the thread's last word
                future.set_exception(RuntimeError("an attempt ended without an outcome"))

    Thread(target=run, name="dowse-endpoint", daemon=True).start()
    return future.result(limit_s)


def _pause_s(attempt: int, asked_s: float | None) -> float:
    """What the server asks for, else doubling from half a second, with jitter against thundering herds."""
    if asked_s is not None:
        return min(asked_s, _LONGEST_PAUSE_S)
    pause_s: float = min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
    return pause_s * random.uniform(0.5, 1.0)


def _retry_after_s(headers: Any) -> float | None:
    asked = (headers.get("Retry-After") or "").strip() if headers else ""
    return float(asked) if asked.isdecimal() else None


def _short(err: BaseException) -> str:
    """Without the answer's text, which an incomplete read carries along."""
    if isinstance(err, TimeoutError):
        return "timed out"
    return str(err) or type(err).__name__
