"""A collector of OpenTelemetry's protocol on loopback."""

from __future__ import annotations

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


class Collector:
    """Keeps what it is sent. ``status``: what it answers."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append(ExportMetricsServiceRequest.FromString(body))
                collector.headers.append(dict(self.headers))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def values(self) -> Counter[tuple[str, tuple[tuple[str, str], ...]]]:
        """The sum of what came, by metric and attributes; of a histogram the count, of a gauge the last value."""
        sums: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        for metric in self._metrics():
            for point in [*metric.sum.data_points, *metric.gauge.data_points, *metric.histogram.data_points]:
                key = (metric.name, tuple(sorted((a.key, a.value.string_value) for a in point.attributes)))
                if metric.HasField("histogram"):
                    sums[key] += point.count
                elif metric.HasField("sum"):
                    sums[key] += int(point.as_int or point.as_double)
                else:
                    sums[key] = int(point.as_int or point.as_double)
        return sums

    def temporalities(self) -> set[int]:
        """How sums and histograms add up: 1 is delta, 2 cumulative."""
        return {
            kind.aggregation_temporality
            for metric in self._metrics()
            for kind in (metric.sum, metric.histogram)
            if kind.data_points
        }

    def _metrics(self) -> list[Any]:
        return [
            metric
            for request in self.requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
