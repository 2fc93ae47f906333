"""HTTP protocol of uvicorn's C parser with limits for the size and the time of a request head.

If all connections are taken, the one that has waited longest for its head gives way to a new one, so that clients that
send heads slowly or never lock nobody out.

The Python parser h11 has such a limit of its own but takes several times the CPU. It runs where `httptools` is not
installed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dowse.serve.http.options import HEAD_S, LONGEST_HEADERS_BYTES

_BETWEEN, _HEAD, _BODY = range(3)  # position of a connection in its stream of requests


class BoundedHttpProtocol(HttpToolsProtocol):
    """Protocol that answers a longer head with 400, as any malformed request."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._state = _BETWEEN
        self._begun = 0  # requests begun in the current piece of data
        self._parsed_bytes = 0  # of the head; the parser reports only complete headers
        self._unparsed_bytes = 0  # in pieces of data that belong to an unfinished head
        self._head_timer: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            idle = [each for each in self.connections if isinstance(each, BoundedHttpProtocol) and each._is_idle()]
            oldest = min(idle, key=lambda each: each._idle_since)
            if oldest is not self:
                oldest._give_way()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self._state != _BODY and (self.cycle is None or self.cycle.response_complete)

    def _await_head(self) -> None:
        self._stop_timer()
        self._idle_since = self.loop.time()
        self._head_timer = self.loop.call_later(HEAD_S, self._give_way)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_way(self) -> None:
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        expected = {_BETWEEN: 1, _HEAD: 0}.get(self._state)
        self._begun = 0
        super().data_received(data)
        if self._state == _HEAD and self._begun == expected:
            self._unparsed_bytes += len(data)
            if self._unparsed_bytes > LONGEST_HEADERS_BYTES and not self.transport.is_closing():
                self.send_400_response("The request head is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 1
        self._await_head()
        self._state, self._parsed_bytes, self._unparsed_bytes = _HEAD, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._state = _BODY
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._state = _BETWEEN
        self._idle_since = self.loop.time()
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > LONGEST_HEADERS_BYTES:
            raise ValueError("the request head is too long")  # stops the parser; uvicorn answers 400
