"""A job's checkpoint is taken over only with the table that has its rows; what is copied is what Spark wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from headwater.checkpoints.conditions import ImportRefused
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.imported_checkpoint import ImportTarget, import_checkpoint

CONF = {
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.streaming.stateStore.providerClass": "p",
    "other": "x",
}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The checkpoint of a job with two sources that ended after batch 1."""
    folder = tmp_path / "job"
    for name in ("offsets", "commits", "sources/0"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": "q"}))
    for batch in (0, 1):
        plan(folder, batch)
        (folder / "commits" / str(batch)).write_text("v1\n{}")
    (folder / "sources" / "0" / ".0.crc").write_bytes(b"sum")
    return folder


def plan(folder: Path, batch: int) -> None:
    """Plan a batch."""
    metadata = json.dumps({"batchWatermarkMs": 0, "conf": CONF})
    (folder / "offsets" / str(batch)).write_text(f'v1\n{metadata}\n{{"logOffset":{batch}}}\n-')


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The job's table, which has batch 1."""
    folder = tmp_path / "table"
    for batch in (0, 1):
        written = CommitProperties(app_transactions=[Transaction("q", batch)])
        write_deltalake(str(folder), pa.table({"a": [batch]}), mode="append", commit_properties=written)
    return folder


def target(table: Path | None, **changes: object) -> ImportTarget:
    """What the flow writes to."""
    identity = None if table is None or not table.exists() else str(DeltaTable(str(table)).metadata().id)
    given = {
        "flow": "f",
        "table": table,
        "sink_id": identity,
        "sources": 2,
        "repeats": True,
        "where": "a.py:3",
    }
    return ImportTarget(**{**given, **changes})


@pytest.fixture
def checkpoint(tmp_path: Path) -> FlowCheckpoint:
    """That of the flow, which has not run."""
    return FlowCheckpoint(tmp_path / "storage" / "t" / "f")


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("stateful", [False, True])
def test_the_position_is_copied(job: Path, table: Path, checkpoint: FlowCheckpoint, stateful: bool):
    """Every file of it, checksums too, into the epoch; the state says whose it is, and with which settings state was made."""
    if stateful:
        (job / "state" / "0" / "0").mkdir(parents=True)
    before = files(job)
    (checkpoint.folder / ".importing" / "offsets").mkdir(parents=True)  # of a driver that died
    (checkpoint.folder / ".importing" / "offsets" / "9").touch()
    to = target(table)
    assert import_checkpoint(job, checkpoint, 0, to) == 1
    assert files(checkpoint.epoch_folder(0)) == files(job) == before
    assert checkpoint.epochs() == [0]
    settings = {key: value for key, value in CONF.items() if key != "other"} if stateful else {}
    assert checkpoint.read_state() == FlowState(0, query_id="q", sink_id=to.sink_id, state_settings=settings)


@pytest.mark.parametrize("has_it", [False, True])
def test_a_batch_that_was_not_marked_as_done(
    job: Path, table: Path, checkpoint: FlowCheckpoint, has_it: bool
):
    """Delta's own sink knows whether it has it; where the flow writes in another way nobody does, and it is refused."""
    plan(job, 2)
    if has_it:
        written = CommitProperties(app_transactions=[Transaction("q", 2)])
        write_deltalake(str(table), pa.table({"a": [2]}), mode="append", commit_properties=written)
    with pytest.raises(ImportRefused, match="planned batch 2 and not marked it as done"):
        import_checkpoint(job, checkpoint, 0, target(table, repeats=False))
    assert not checkpoint.folder.exists()
    assert import_checkpoint(job, checkpoint, 0, target(table)) == 1


def test_a_job_that_never_ended_a_batch(job: Path, tmp_path: Path, checkpoint: FlowCheckpoint):
    """Its position is its sources' beginning; a table that is not there yet has all of it."""
    for batch in ("0", "1"):
        (job / "commits" / batch).unlink()
    (job / "offsets" / "1").unlink()
    assert import_checkpoint(job, checkpoint, 0, target(tmp_path / "none")) is None


def test_a_sink_without_a_table(job: Path, checkpoint: FlowCheckpoint):
    """What has left for a broker can't be looked at; the position is taken if the last batch is done."""
    assert import_checkpoint(job, checkpoint, 0, target(None, repeats=False)) == 1


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda job, table: (job / "metadata").unlink(), "is no checkpoint of a stream"),
        (lambda job, table: (job / "metadata").write_text("{"), "can't be read"),
        (lambda job, table: (job / "offsets" / "1").write_text("v1"), "can't be read"),
        (lambda job, table: [path.unlink() for path in (job / "offsets").iterdir()], "is no checkpoint of a stream"),
        (lambda job, table: (job / "metadata").write_text('{"id": "other"}'), "has none of its batches"),
        (lambda job, table: plan(job, 2) or (job / "commits" / "2").write_text("v1\n{}"), "has its batches up to 1"),
        (lambda job, table: (job / "offsets" / "1").write_text('v1\n{}\n{"logOffset":1}'), "positions of 1 streams; the flow reads 2"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together(job: Path, table: Path, checkpoint: FlowCheckpoint, damage, says: str):
    """No checkpoint, a damaged one, one of another table, of more batches than the table has, of other sources: nothing is copied."""
    damage(job, table)
    with pytest.raises(ImportRefused, match=says) as caught:
        import_checkpoint(job, checkpoint, 0, target(table))
    assert caught.value.where == "a.py:3"
    assert caught.value.remedy
    assert not checkpoint.folder.exists()


def test_a_table_that_is_behind(job: Path, tmp_path: Path, checkpoint: FlowCheckpoint):
    """A table that is not there has none of the rows before the position."""
    with pytest.raises(ImportRefused, match="has none of its batches"):
        import_checkpoint(job, checkpoint, 0, target(tmp_path / "none"))
