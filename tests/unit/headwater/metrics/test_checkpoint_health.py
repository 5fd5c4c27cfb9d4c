"""Whether flows could go on from their checkpoints, and how far their event time is."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.errors import CheckpointUnreadable
from headwater.metrics.checkpoint_health import Health, pipeline_health
from headwater.metrics.watermark import pipeline_watermarks
from headwater.storage.conditions import StoreUnreachable

from .conftest import write_rows


@pytest.fixture
def healthy(done):
    """The pipeline after an update, with ids in its checkpoints."""
    for name in ("bronze", "silver"):
        (done.checkpoint(name).epoch_folder(0) / "metadata").write_text('{"id": "some-query"}')
    return done


def health_of(pipeline, name):
    return next(entry for entry in pipeline_health(pipeline.project, pipeline.manifest) if entry.flow == name)


def test_checkpoints_after_an_update_are_healthy(healthy):
    """Streams only: a view that is recomputed has no position."""
    entries = pipeline_health(healthy.project, healthy.manifest)
    assert [(entry.flow, entry.health, entry.last_batch) for entry in entries] == [
        ("bronze", Health.HEALTHY, 0),
        ("silver", Health.HEALTHY, 0),
    ]
    assert all(0 <= entry.age < 60 for entry in entries)
    assert json.loads(json.dumps(entries[0].as_dict()))["health"] == "healthy"


def test_flows_that_never_ran_are_new(pipeline):
    """There is nothing to repair before the first update."""
    assert {entry.health for entry in pipeline_health(pipeline.project, pipeline.manifest)} == {Health.NEW}


def break_offsets(pipeline):
    (pipeline.checkpoint("silver").epoch_folder(0) / "offsets" / "0").write_text("")


def remove_checkpoint(pipeline):
    shutil.rmtree(pipeline.checkpoint("silver").epoch_folder(0))


def remove_metadata(pipeline):
    (pipeline.checkpoint("silver").epoch_folder(0) / "metadata").unlink()


def remove_table(pipeline):
    shutil.rmtree(pipeline.table("silver"))


def make_table_anew(pipeline):
    remove_table(pipeline)
    write_rows(pipeline.table("silver"), 1)


def break_state(pipeline):
    pipeline.checkpoint("silver").state_file.write_text("{")


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (break_offsets, "offsets/0"),
        (remove_checkpoint, "checkpoint is gone"),
        (remove_metadata, "metadata file is gone"),
        (remove_table, "not there any more"),
        (make_table_anew, "recreated"),
        (break_state, "flow.json is damaged"),
    ],
)
def test_each_harm_is_told_of_its_own_flow(healthy, harm, problem):
    """Damage, loss, and a table that is another one: the flow is sick, the others are not."""
    harm(healthy)
    silver = health_of(healthy, "silver")
    assert silver.health is Health.SICK
    assert problem in silver.problem
    assert health_of(healthy, "bronze").health is Health.HEALTHY


def test_a_position_that_its_source_has_forgotten_is_stale(healthy):
    """The log of the table that it reads begins behind the checkpoint: it is sick before an update finds out."""
    for _ in range(3):
        write_rows(healthy.table("bronze"), 1)
    assert health_of(healthy, "silver").health is Health.HEALTHY
    for commit in sorted((healthy.table("bronze") / "_delta_log").glob("*.json"))[:3]:
        commit.unlink()
    silver = health_of(healthy, "silver")
    assert silver.health is Health.SICK
    assert "stale: version" in silver.problem
    assert "of bronze" in silver.problem


def test_a_watermark_is_that_of_the_last_committed_batch(healthy):
    """In seconds behind now; a stream without one has none, and a damaged checkpoint is an error."""
    reached = int((time.time() - 90) * 1000)
    commit = healthy.checkpoint("silver").epoch_folder(0) / "commits" / "0"
    commit.write_text(f'v1\n{{"nextBatchWatermarkMs":{reached}}}')
    bronze, silver = pipeline_watermarks(healthy.project, healthy.manifest)
    assert (bronze.flow, bronze.watermark, bronze.seconds) == ("bronze", None, None)
    assert silver.watermark == reached / 1000
    assert 89 < silver.seconds < 120
    commit.write_text("v1\n{")
    with pytest.raises(CheckpointUnreadable):
        pipeline_watermarks(healthy.project, healthy.manifest)


def test_a_store_that_is_away_is_no_sickness(done, monkeypatch):
    """Whoever looks tries again: nobody is told that a checkpoint is damaged."""

    def away(_):
        raise StoreUnreachable("no answer")

    monkeypatch.setattr(FlowCheckpoint, "surviving_state", away)
    with pytest.raises(StoreUnreachable):
        pipeline_health(done.project, done.manifest)
