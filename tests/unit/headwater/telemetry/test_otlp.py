"""What an update's events say reaches a collector of OpenTelemetry, and no collector can disturb an update."""

from __future__ import annotations

import logging
import socket

import pytest

from headwater.event_log import details
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.writer import EventLogWriter
from headwater.telemetry.otlp import metrics_export, wanted

from .collector import Collector

RULE = {"name": "positive", "dataset": "silver", "passed_records": 4, "failed_records": 1}
FLOW = (("dataset", "silver"), ("flow", "silver"), ("pipeline", "orders"))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


def write_update(folder, update="u1"):
    """A stream of two batches and a view, in an update that completes."""
    with metrics_export() as metrics, EventLogWriter(folder, "orders", "Orders", update) as log:
        log.subscribe(metrics.offer)
        log.emit("create_update", "requested", details=details.create_update())
        for number in (0, 1):
            counted = {"num_input_rows": 5, "num_output_rows": 4, "backlog_records": 9 - number, "batch_duration_ms": 40, "state_rows": 3}  # fmt: skip
            body = details.flow_progress(
                FlowStatus.RUNNING, metrics=counted, dropped=1, quarantined=0, expectations=[RULE]
            )
            log.emit(
                "flow_progress",
                "a batch",
                flow="silver",
                dataset="silver",
                batch_id=number,
                epoch=0,
                details=body,
            )
        log.emit(
            "flow_progress",
            "done",
            flow="silver",
            dataset="silver",
            details=details.flow_progress(FlowStatus.COMPLETED),
        )
        view = details.flow_progress(
            FlowStatus.COMPLETED, metrics={"num_input_rows": 8, "num_output_rows": 2}, dropped=0
        )
        log.emit("flow_progress", "done", flow="gold", dataset="gold", details=view)
        log.emit("update_progress", "over", details=details.update_progress(UpdateState.COMPLETED))


def test_an_update_is_counted(tmp_path, monkeypatch):
    """Batches, rows, rules, ends and the newest backlog arrive as sums; a second update adds to them."""
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc")
        write_update(tmp_path)
        write_update(tmp_path, "u2")
    values, end = collector.values(), ("state", "COMPLETED")
    assert values["headwater.update.ends", (("pipeline", "orders"), end)] == 2
    assert values["headwater.update.duration", (("pipeline", "orders"), end)] == 2
    assert values["headwater.flow.batches", FLOW] == values["headwater.flow.batch.duration", FLOW] == 4
    rows = {kind: values["headwater.flow.rows", (*FLOW[:2], ("kind", kind), FLOW[2])] for kind in ("input", "output", "dropped")}  # fmt: skip
    assert rows == {"input": 20, "output": 16, "dropped": 4}
    gold = (("dataset", "gold"), ("flow", "gold"), ("kind", "output"), ("pipeline", "orders"))
    assert values["headwater.flow.rows", gold] == 4
    assert values["headwater.flow.backlog.records", FLOW] == 8
    assert values["headwater.flow.state.rows", FLOW] == 3
    rule = (("dataset", "silver"), ("outcome", "failed"), ("pipeline", "orders"), ("rule", "positive"))
    assert values["headwater.rule.rows", rule] == 4
    assert values["headwater.flow.ends", (*FLOW, end)] == 2
    assert collector.temporalities() == {1}
    assert {headers["api-key"] for headers in collector.headers} == {"abc"}


@pytest.mark.parametrize("kind", ["refuses", "is not there"])
def test_a_collector_that_fails_disturbs_nothing(tmp_path, monkeypatch, caplog, kind):
    """The update's records are written and nothing is raised; the log says that metrics were lost."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with Collector(400) as collector, socket.socket() as closed, caplog.at_level(logging.WARNING):
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address if kind == "refuses" else nobody)
        write_update(tmp_path)
        assert len(collector.requests) == (kind == "refuses")
    assert any("export" in record.message.lower() for record in caplog.records), caplog.text


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(variables, sent):
    """As in every program that speaks OpenTelemetry."""
    assert wanted(variables) is sent
