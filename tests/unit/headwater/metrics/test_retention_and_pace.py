"""How near streams are to what their sources forget, and how long their batches take."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from deltalake import DeltaTable

from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.writer import EventLogWriter
from headwater.metrics import retention
from headwater.metrics.pace import flow_paces
from headwater.metrics.retention import retention_use
from headwater.storage.conditions import StoreRefused

from .conftest import write_rows

DAY = 86400


def age_commits(table, seconds):
    """Make every commit of a table older."""
    for file in (table / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["timestamp"] -= int(seconds * 1000)
        file.write_text("\n".join(json.dumps(line) for line in lines) + "\n")


def uses(pipeline):
    return retention_use(pipeline.project, pipeline.manifest)


def test_a_stream_that_has_read_everything_uses_nothing(done):
    """Only streams from tables have something to lose: files and views are left out."""
    (use,) = uses(done)
    assert (use.flow, use.source, use.waiting, use.percent) == ("silver", "bronze", 0.0, 0.0)
    assert use.kept == 7 * DAY


def test_an_unread_commit_counts_from_when_it_was_made(done):
    """Two days of the week that removed files are kept by default."""
    write_rows(done.table("bronze"), 3)
    age_commits(done.table("bronze"), 2 * DAY)
    (use,) = uses(done)
    assert use.waiting == pytest.approx(2 * DAY, abs=60)
    assert use.percent == pytest.approx(100 * 2 / 7, abs=0.1)


def test_the_shorter_of_the_tables_two_properties_counts(done):
    """Its log may forget before its files are removed."""
    DeltaTable(str(done.table("bronze"))).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 36 hours"}
    )
    (use,) = uses(done)
    assert use.kept == 1.5 * DAY


def test_a_position_that_cant_be_read_is_not_known(done):
    """And says why; a source that is not there yet is left out."""
    (done.checkpoint("silver").epoch_folder(0) / "offsets" / "0").write_text("")
    (use,) = uses(done)
    assert use.percent is None
    assert "the file is empty" in use.reason
    shutil.rmtree(done.table("bronze"))
    assert uses(done) == []


def test_the_pace_is_the_median_of_the_newest_five_batches(tmp_path, monkeypatch):
    """One slow batch, and slow ones long ago, do not count, and neither do updates without news."""
    monkeypatch.setattr("headwater.metrics.pace._RECORDS", 8)

    def tell(*seconds):
        with EventLogWriter(tmp_path, "orders", "orders", str(time.time_ns()), None) as log:
            for each in seconds:
                log.emit(
                    "flow_progress",
                    "a batch",
                    flow="silver",
                    dataset="silver",
                    batch_id=next(numbers),
                    epoch=0,
                    details=flow_progress(FlowStatus.RUNNING, metrics={"batch_duration_ms": each * 1000}),
                )
            for _ in range(8):
                none = flow_progress(FlowStatus.COMPLETED, metrics={"num_input_rows": 0})
                log.emit("flow_progress", "no news", flow="silver", dataset="silver", details=none)
        (pace,) = flow_paces(tmp_path)
        return pace.batches, pace.seconds

    numbers = iter(range(100))
    assert flow_paces(tmp_path) == []
    assert tell(60, 61) == (2, 60.5)
    assert tell(1, 2, 3, 4, 90) == (5, 3.0)


def test_a_table_that_cant_be_read_is_not_known(done):
    """A damaged log is not a table that is missing: the check says so, instead of leaving the stream out."""
    for file in (done.table("bronze") / "_delta_log").glob("*.json"):
        file.write_text("{")
    (use,) = uses(done)
    assert (use.flow, use.waiting, use.kept, use.percent) == ("silver", None, None, None)
    assert "can't be read" in use.reason
    shutil.rmtree(done.table("bronze"))
    assert uses(done) == []


def test_a_table_that_can_not_be_read(done):
    """It is not known what a stream may lose of it; what is known of another table is not taken for it."""
    (silver,) = (flow for flow in done.manifest.flows if flow.name == "silver")
    (bronze,) = silver.sources
    other = bronze.model_copy(update={"name": "gold", "location": done.manifest.dataset("gold").location})
    for file in (done.table("bronze") / "_delta_log").glob("*.json"):
        file.write_text("{")
    flows = (silver.model_copy(update={"sources": (other, bronze)}),)
    known, unknown = retention_use(done.project, done.manifest.model_copy(update={"flows": flows}))
    assert (known.source, known.kept) == ("gold", 7 * DAY)
    assert (unknown.source, unknown.waiting, unknown.kept, unknown.percent) == ("bronze", None, None, None)
    assert "can't be read" in (unknown.reason or "")


def test_a_source_that_its_store_does_not_show(done, monkeypatch):
    """How near a stream is can't be told then, with the store's reason; the others are told."""

    def denied(*_):
        raise StoreRefused("The object store denies access.")

    monkeypatch.setattr(retention, "delta_table", denied)
    (use,) = uses(done)
    assert (use.source, use.kept) == ("bronze", None)
    assert "denies access" in (use.reason or "")
