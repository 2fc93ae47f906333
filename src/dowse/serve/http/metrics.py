"""Requests enter as they end; what Prometheus asks for leaves as text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from dowse.serve.backend import Backend
    from dowse.serve.http.admission import Room

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the client library's own name: where several processes put their counts
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_OTHER = "other"  # paths that no route has: they are the client's words, and there is no end to them


class Metrics:
    """Counts by route, method and status. With several processes, their sum."""

    def __init__(self, backend: Backend, room: Room) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, that says when it began
        own = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("dowse_requests", "Requests answered.", labels, registry=own)
        self._seconds = Histogram(
            "dowse_request_seconds", "Until the answer was complete.", ("route",), buckets=_SECONDS, registry=own
        )
        self._shown = own
        if os.environ.get(SHARED_FOLDER):
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=own)
        self._shown.register(_Gauges(backend, room))

    def note(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._shown)


class _Gauges(Collector):
    """What is so at the moment of asking."""

    def __init__(self, backend: Backend, room: Room) -> None:
        self._backend = backend
        self._room = room

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing is looked at before the first scrape: the index may be busy or broken, and the server starts."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        stats = self._backend.engine.reader().stats
        rows = (
            ("dowse_documents", "Documents in the index.", stats.documents),
            ("dowse_chunks", "Chunks that are searched.", stats.chunks),
            ("dowse_vectors", "Chunks that have a vector.", stats.vectors),
            (
                "dowse_requests_under_way",
                "Requests that work or wait, of the process that is asked.",
                self._room.under_way,
            ),
            ("dowse_requests_refused", "Requests refused for want of room, likewise.", self._room.refused),
        )
        for name, text, value in rows:
            yield GaugeMetricFamily(name, text, value=value)


class Measured:
    """A layer of the application that notes every answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", _OTHER)
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else _OTHER
            self._metrics.note(route, method, status, perf_counter() - started)
