"""What Prometheus pulls of a pipeline, read back by Prometheus' own parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from tests.unit.headwater.metrics.conftest import done, pipeline, write_rows

from headwater.event_log import details
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.stream_measures import stream_measures
from headwater.event_log.writer import EventLogWriter
from headwater.telemetry.exposition import as_text, samples
from headwater.telemetry.families import FAMILIES

__all__ = ["done", "pipeline"]


def read(*projects):
    """Values by family and labels."""
    families = text_string_to_metric_families(as_text(samples(projects)))
    return {
        (s.name, *(s.labels[label] for label in FAMILIES[s.name][1])): s.value
        for family in families
        for s in family.samples
    }


def record_update(project, rule):
    with EventLogWriter(project.state_folder, project.pipeline_id, "orders", "u1") as log:
        log.emit("create_update", "requested", details=details.create_update())
        counted = {"num_input_rows": 5, "num_output_rows": 4, "batch_duration_ms": 40, "state_rows": 3}
        broken = [{"name": rule, "dataset": "silver", "passed_records": 4, "failed_records": 1}]
        body = details.flow_progress(FlowStatus.RUNNING, metrics=counted, dropped=1, expectations=broken)
        log.emit(
            "flow_progress",
            "a batch",
            level="METRICS",
            flow="silver",
            dataset="silver",
            batch_id=0,
            epoch=0,
            details=body,
        )
        log.emit(
            "flow_progress",
            "no",
            flow="silver",
            dataset="silver",
            details=details.flow_progress(FlowStatus.FAILED),
        )
        log.emit("update_progress", "over", details=details.update_progress(UpdateState.FAILED))


def test_a_pipeline_stands_there_in_figures(done):
    """The last update, rows, lag, state, freshness and rules; names with quotes and line ends come back as they were."""
    rule = 'is "right"\\\nhere'
    record_update(done.project, rule)
    write_rows(done.table("bronze"), 3, 4, 5)
    values = read(done.project)
    assert values["headwater_pipeline_readable", "orders"] == 1
    assert values["headwater_last_update_state", "orders", "FAILED"] == 1
    assert values["headwater_last_update_state", "orders", "COMPLETED"] == 0
    flow = ("orders", "silver", "silver")
    assert values["headwater_last_update_flow_failed", *flow] == 1
    assert values["headwater_last_update_flow_rows", *flow, "output"] == 4
    assert values["headwater_last_update_flow_rows", *flow, "dropped"] == 1
    assert values["headwater_flow_lag_records", *flow] == 3
    assert values["headwater_flow_lag_known", *flow] == 1
    assert values["headwater_flow_state_rows", *flow] == 3
    assert values["headwater_dataset_version", "orders", "bronze"] == 1
    assert values["headwater_dataset_age_seconds", "orders", "gold"] < 60
    assert values["headwater_rule_rows", "orders", "silver", rule, "failed"] == 1


def test_a_pipeline_that_cant_be_read_says_so(done, pipeline):
    """Its figure is 0, and those of the others are there."""
    (done.project.state_folder / "manifest.json").write_text("{")
    assert read(done.project)["headwater_pipeline_readable", "orders"] == 0


def test_before_the_first_update(pipeline):
    """There is nothing but that it can be read."""
    assert read(pipeline.project) == {("headwater_pipeline_readable", "orders"): 1.0}


def test_measures_of_the_newest_batch(done):
    """Of each flow, whatever table it fills; records that measure nothing count for none."""
    with EventLogWriter(done.project.state_folder, done.project.pipeline_id, "orders", "u1") as log:
        for batch, milliseconds in ((0, 40), (1, 50), (2, None)):
            metrics = {"num_input_rows": 1} | (
                {} if milliseconds is None else {"batch_duration_ms": milliseconds}
            )
            about = {"flow": "more", "dataset": "silver", "batch_id": batch, "epoch": 0}
            body = details.flow_progress(FlowStatus.RUNNING, metrics=metrics)
            log.emit("flow_progress", "a batch", level="METRICS", details=body, **about)
    (measures,) = [each for each in stream_measures(done.project.state_folder) if each.flow == "more"]
    assert (measures.dataset, measures.batch_id, measures.batch_duration_ms) == ("silver", 1, 50)
