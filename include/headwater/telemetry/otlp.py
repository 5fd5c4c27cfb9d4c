"""Sends measurements by OpenTelemetry's protocol where its standard variables name a collector.

Decision 0194.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from headwater.event_log.event import Event
from headwater.telemetry.instruments import INSTRUMENTS, Instrument, Kind
from headwater.telemetry.measurements import Measuring

_log = logging.getLogger(__name__)
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_TEMPORALITY = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
# How long the end of an update waits for a collector that does not answer.
_SECONDS = 5.0
_Recorder = Callable[[float, Mapping[str, str]], None]


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the standard variables ask for metrics."""
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    exporters = environment.get("OTEL_METRICS_EXPORTER", "otlp").lower().split(",")
    return not off and "otlp" in exporters and any(environment.get(name) for name in _ENDPOINTS)


class MetricsExport:
    """Takes events of the log, and sends what they measure."""

    def __init__(self, meter: Any = None) -> None:
        """``meter``: OpenTelemetry's; None: nothing is sent."""
        self._measuring = Measuring()
        self._record: dict[Instrument, _Recorder] = (
            {} if meter is None else {one: _recorder(meter, one) for one in INSTRUMENTS}
        )

    def offer(self, events: Sequence[Event]) -> None:
        """Count events that are in the log now; a listener of the event log, so it never raises."""
        if not self._record:
            return
        for event in events:
            try:
                for measured in self._measuring.of(event):
                    self._record[measured.instrument](measured.value, dict(measured.attributes))
            except Exception as error:  # metrics must not end what they measure
                _log.warning(
                    "An event was not counted for OpenTelemetry: %s: %s", type(error).__name__, error
                )


def _recorder(meter: Any, instrument: Instrument) -> _Recorder:
    about = {"name": instrument.name, "unit": instrument.unit, "description": instrument.description}
    match instrument.kind:
        case Kind.COUNTER:
            return cast("_Recorder", meter.create_counter(**about).add)
        case Kind.HISTOGRAM:
            return cast("_Recorder", meter.create_histogram(**about).record)
        case Kind.GAUGE:
            return cast("_Recorder", meter.create_gauge(**about).set)


@contextmanager
def metrics_export() -> Iterator[MetricsExport]:
    """What to subscribe to an event log; at the end what is left is sent, within five seconds.

    A collector that can't be reached costs those seconds and a warning, nothing else.
    """
    provider = _provider() if wanted() else None
    if provider is None:
        yield MetricsExport()
        return
    try:
        yield MetricsExport(provider.get_meter("headwater"))
    finally:
        try:
            provider.shutdown(timeout_millis=_SECONDS * 1000)
        except Exception as error:  # the update's own outcome counts
            _log.warning("The last metrics were not sent: %s", error)


def _provider() -> Any:
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    except ImportError as error:
        _log.warning("Metrics are not sent: this Python has no OpenTelemetry SDK (%s)", error)
        return None
    named = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "headwater")})
    return MeterProvider([PeriodicExportingMetricReader(_exporter())], resource=named, shutdown_on_exit=False)


def _exporter() -> Any:
    """OpenTelemetry's own exporter. Drivers live for one update: what each of them adds is sent, not totals from zero."""
    from opentelemetry.sdk.metrics import Counter, Histogram
    from opentelemetry.sdk.metrics.export import AggregationTemporality

    protocol = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or os.environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
    )
    flavor = "grpc" if protocol == "grpc" else "http"
    module = import_module(f"opentelemetry.exporter.otlp.proto.{flavor}.metric_exporter")
    settings: dict[str, Any] = {}
    if not os.environ.get(_TEMPORALITY):
        delta = AggregationTemporality.DELTA
        settings["preferred_temporality"] = {Counter: delta, Histogram: delta}
    if not any(os.environ.get(name) for name in _TIMEOUTS):
        settings["timeout"] = _SECONDS
    return module.OTLPMetricExporter(**settings)
