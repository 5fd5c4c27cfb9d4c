"""A job's checkpoint is taken over from a disk or from S3, into storage on a disk or on S3."""

from __future__ import annotations

import itertools

import obstore
import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.object_stores import put_exactly
from tests.unit.headwater.doctor.test_open_epoch import content
from tests.unit.headwater.preflight.test_imported_checkpoint import plan
from tests.unit.headwater.storage.test_killed_repairs import killed_before

from headwater.checkpoints.conditions import ImportRefused
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.whole_folders import copy_durably
from headwater.delta_log.table_history import table_id
from headwater.errors import LeaseLost
from headwater.preflight import imported_checkpoint
from headwater.preflight.imported_checkpoint import ImportTarget, import_checkpoint
from headwater.storage.walking import copy_files

_NUMBERS = itertools.count()


@pytest.fixture
def places(s3, tmp_path):
    """A place by the kind of its root."""
    s3.make_bucket("jobs")
    number = next(_NUMBERS)
    return {
        "disk": tmp_path / "disk",
        "same bucket": s3.place("places", f"imports-{number}"),
        "another bucket": s3.place("jobs", f"imports-{number}"),
    }


@pytest.fixture
def local(tmp_path):
    """A job's checkpoint of two batches, with state, an empty file, and checksums as Hadoop keeps them."""
    folder = tmp_path / "job"
    for name in ("offsets", "commits", "sources/0", "state/0/0"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"q"}')
    for number in (0, 1):
        plan(folder, number)
        (folder / "commits" / str(number)).write_text("v1\n{}")
    (folder / "state" / "0" / "0" / "2.delta").write_bytes(b"changes" * 1000)
    (folder / "state" / "0" / "0" / "empty").touch()
    return folder


def target(table):
    for number in (0, 1):
        written = CommitProperties(app_transactions=[Transaction("q", number)])
        rows = pa.table({"a": [number]})
        write_deltalake(str(table), rows, mode="append", commit_properties=written)
    return ImportTarget("f", table, table_id(table), 2, repeats=True)


@pytest.mark.parametrize("source", ["disk", "same bucket", "another bucket"])
@pytest.mark.parametrize("storage", ["disk", "same bucket"])
def test_each_way(local, places, source, storage):
    """Every file of it is in the epoch, and the flow's state says whose it is; Hadoop's marks of folders are left out."""
    job = local
    if source != "disk":
        job = places[source] / "job"
        copy_files(local, job)
        for folder in ("offsets", "state"):
            mark(job / folder)
    checkpoint = FlowCheckpoint(places[storage] / "storage" / "t" / "f")
    to = target(places["same bucket"] / "table")
    assert import_checkpoint(job, checkpoint, 0, to) == 1
    assert content(checkpoint.epoch_folder(0)) == content(local)
    assert checkpoint.epochs() == checkpoint.epochs_begun() == [0]
    state = checkpoint.read_state()
    assert state is not None
    assert (state.query_id, state.sink_id) == ("q", to.sink_id)


def mark(folder):
    """An empty object named as the folder with a slash, as Hadoop makes it."""
    put_exactly(folder.bucket.store.endpoint, f"/{folder.bucket.name}/{folder.key}/")
    assert any(
        meta["path"] == folder.key for meta in obstore.list(folder.bucket.client, folder.key).collect()
    )


def test_checksums_of_a_disk(local, places):
    """They are compared before the copy, which has none: Spark would not keep them up on a store."""
    to = target(places["same bucket"] / "table")
    checkpoint = FlowCheckpoint(places["same bucket"] / "storage" / "t" / "f")
    (local / "offsets" / ".1.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    with pytest.raises(ImportRefused, match="not what its checksum says"):
        import_checkpoint(local, checkpoint, 0, to)
    assert not checkpoint.folder.exists()
    (local / "offsets" / ".1.crc").unlink()
    (local / "offsets" / ".9.crc").write_bytes(b"of a file that is gone")
    assert import_checkpoint(local, checkpoint, 0, to) == 1
    assert not (checkpoint.epoch_folder(0) / "offsets" / ".9.crc").exists()


def test_another_driver_was_first(local, places, monkeypatch):
    """A driver that stood still while it copied leaves the state that another one has written since."""
    checkpoint = FlowCheckpoint(places["same bucket"] / "storage" / "t" / "f")

    def stands_still(*given):
        copy_durably(*given)
        checkpoint.write_state(FlowState(epoch=1, query_id="of another"))

    monkeypatch.setattr(imported_checkpoint, "copy_durably", stands_still)
    with pytest.raises(LeaseLost):
        import_checkpoint(local, checkpoint, 0, target(places["same bucket"] / "table"))
    assert checkpoint.read_state() == FlowState(epoch=1, query_id="of another")


def test_killed_before_each_write(local, places):
    """The flow is as if it had never begun, or has the whole position; the next start takes it over or goes on from it."""
    to = target(places["same bucket"] / "table")
    for number in itertools.count():
        checkpoint = FlowCheckpoint(places["same bucket"] / "storage" / "t" / f"f{number}")
        killed = killed_before(number, lambda to=to, it=checkpoint: import_checkpoint(local, it, 0, to))
        state = checkpoint.surviving_state()
        if state is not None:
            assert content(checkpoint.epoch_folder(state.epoch)) == content(local)
        else:
            epoch = max(checkpoint.epochs_begun(), default=-1) + 1
            assert import_checkpoint(local, checkpoint, epoch, to) == 1
            assert checkpoint.epochs() == checkpoint.epochs_begun() == [epoch]
        if not killed:
            break
    assert number >= 9
