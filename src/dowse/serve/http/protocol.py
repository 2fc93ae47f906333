"""HTTP protocol of uvicorn's C parser with a limit for the size of a request head.

The Python parser h11 has such a limit of its own but takes several times the CPU. It runs where `httptools` is not
installed.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dowse.serve.http.options import LONGEST_HEADERS_BYTES

_BETWEEN, _HEAD, _BODY = range(3)  # position of a connection in its stream of requests


class BoundedHttpProtocol(HttpToolsProtocol):
    """Protocol that answers a longer head with 400, as any malformed request."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._state = _BETWEEN
        self._begun = 0  # requests begun in the current piece of data
        self._parsed_bytes = 0  # of the head; the parser reports only complete headers
        self._unparsed_bytes = 0  # in pieces of data that belong to an unfinished head

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
        self._state, self._parsed_bytes, self._unparsed_bytes = _HEAD, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._state = _BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._state = _BETWEEN
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > LONGEST_HEADERS_BYTES:
            raise ValueError("the request head is too long")  # stops the parser; uvicorn answers 400
