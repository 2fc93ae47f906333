"""Bytes of a connection enter, requests leave: uvicorn's parser in C, with an end to what a request's head may hold.

The one in Python, h11, has such an end of its own, and takes several times the CPU; it serves
where `httptools` is not installed.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dowse.serve.http.options import LONGEST_HEADERS_BYTES

_BETWEEN, _HEAD, _BODY = range(3)  # where in its stream of requests a connection is


class Bounded(HttpToolsProtocol):
    """A head that is longer is answered with 400, as anything that is no request is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._state = _BETWEEN
        self._begun = 0  # requests, by the piece that is being read
        self._told_bytes = 0  # of the head, by the parser: only when a header is complete
        self._held_bytes = 0  # in pieces that are nothing but head, and brought no end of it

    def data_received(self, data: bytes) -> None:
        expected = {_BETWEEN: 1, _HEAD: 0}.get(self._state)
        self._begun = 0
        super().data_received(data)
        if self._state == _HEAD and self._begun == expected:
            self._held_bytes += len(data)
            if self._held_bytes > LONGEST_HEADERS_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 1
        self._state, self._told_bytes, self._held_bytes = _HEAD, 0, 0

    def on_url(self, url: bytes) -> None:
        self._tell(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._tell(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._state = _BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._state = _BETWEEN
        super().on_message_complete()

    def _tell(self, size: int) -> None:
        self._told_bytes += size
        if self._told_bytes > LONGEST_HEADERS_BYTES:
            raise ValueError("the head is too long")  # the parser stops, and uvicorn answers with 400
