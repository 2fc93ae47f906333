"""Prometheus metrics of the HTTP server: requests by route, latencies, and gauges of the index."""

from __future__ import annotations

import os
from collections.abc import Iterable
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dowse.serve.backend import Backend
from dowse.serve.http.admission import AdmissionControl

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # variable of the client library: where processes share their counts
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_OTHER = "other"  # paths without a route: clients choose them, so their number has no bound


class Metrics:
    """Counters by route, method and status, summed over all worker processes."""

    def __init__(self, backend: Backend, admission: AdmissionControl) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series
        own = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("dowse_requests", "Requests answered.", labels, registry=own)
        self._seconds = Histogram(
            "dowse_request_seconds",
            "Seconds until the answer was complete.",
            ("route",),
            buckets=_SECONDS,
            registry=own,
        )
        self._shown = own
        if os.environ.get(SHARED_FOLDER):
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=own)
        self._shown.register(_IndexGauges(backend, admission))

    def record(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._shown)


class _IndexGauges(Collector):
    """Gauges read at every scrape."""

    def __init__(self, backend: Backend, admission: AdmissionControl) -> None:
        self._backend = backend
        self._admission = admission

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return nothing, so that registration does not read the index: it may be busy or damaged at start."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        stats = self._backend.engine.reader().stats
        rows = (
            ("dowse_documents", "Documents in the index.", stats.documents),
            ("dowse_chunks", "Chunks in the index.", stats.chunks),
            ("dowse_vectors", "Chunks with an embedding.", stats.vectors),
            ("dowse_requests_under_way", "Requests running or queued in this process.", self._admission.active),
            (
                "dowse_requests_refused",
                "Requests refused by admission control in this process.",
                self._admission.refused,
            ),
        )
        for name, text, value in rows:
            yield GaugeMetricFamily(name, text, value=value)


class MetricsMiddleware:
    """Middleware that records every answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def send_recorded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_recorded)
        finally:
            route = getattr(scope.get("route"), "path", _OTHER)
            method = (
                scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS") else _OTHER
            )
            self._metrics.record(route, method, status, perf_counter() - started)
