"""What Airflow's task writes for a driver that ended without a report."""

from __future__ import annotations

import pytest
from tests.unit.headwater.metrics.conftest import pipeline
from tests.unit.headwater.telemetry.collector import Collector

from headwater.event_log import details, reader
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.following.update_record import failed_flows, newest_update, record_silent_end

__all__ = ["pipeline"]


@pytest.mark.parametrize("will_retry", [False, True])
def test_a_silent_end_closes_flows_and_update(pipeline, will_retry):
    """The update and its running flow get their one terminal record; who waits goes on waiting if it is tried again."""
    project = pipeline.project
    with EventLogWriter(project.state_folder, "orders", "orders", "u1", "r1") as log:
        log.emit("create_update", "", details=details.create_update())
        log.emit("update_progress", "", details=details.update_progress(UpdateState.RUNNING))
        body = details.flow_progress(FlowStatus.RUNNING)
        log.emit("flow_progress", "", flow="bronze", dataset="bronze", epoch=1, details=body)
    for _ in range(2):
        update = newest_update(project, "r1")
        record_silent_end(project, "r1", update, "The driver was killed.", will_retry=will_retry)
    (flow,) = reader.flow_results(project.state_folder, request_id="r1")
    assert (flow.state, flow.finished) == ("FAILED", not will_retry)
    assert flow.error is not None
    assert flow.error.splitlines()[0] == "[FLOW_INTERRUPTED] The driver was killed."
    ends = [
        e["details"]["update_progress"]["state"]
        for e in reader.events(project.state_folder, event_type="update_progress")
    ]
    assert ends == ["RUNNING", "FAILED"]
    assert len(reader.events(project.state_folder, event_type="flow_progress")) == 2


def test_a_silent_end_is_counted(pipeline, monkeypatch):
    """A collector of metrics hears of an update whose driver could not say that it failed."""
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        record_silent_end(pipeline.project, "r1", None, "The driver was killed.", will_retry=False)
    ends = ("headwater.update.ends", (("pipeline", "orders"), ("state", "FAILED")))
    assert collector.values()[ends] == 1


def test_a_flow_that_starts_again_has_not_ended(pipeline):
    """Failures that a continuous driver restarts by itself don't decide how its end is judged; one that stays failed does."""
    project = pipeline.project
    with EventLogWriter(project.state_folder, "orders", "orders", "u1", "r1") as log:
        log.emit("create_update", "", details=details.create_update())
        for flow, more in (("bronze", {"attempt": 1, "will_retry": True}), ("silver", {"will_retry": False})):
            body = details.flow_progress(FlowStatus.FAILED, **more)
            log.emit("flow_progress", "", flow=flow, dataset=flow, details=body)
    failed = failed_flows(project, newest_update(project, "r1"))
    assert [record["origin"]["flow_name"] for record in failed] == ["silver"]
