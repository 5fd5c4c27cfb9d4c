"""What a backfill leaves on a store when it is killed, and who puts it right (decision 0191)."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction
from tests.object_stores import make_old
from tests.unit.headwater.metrics.conftest import done, pipeline, write_rows
from tests.unit.headwater.storage.test_requests import cache

from headwater.checkpoints import pending_replacement, whole_folders
from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.open_epoch import open_at
from headwater.storage.delta_tables import append
from headwater.storage.object_path import ObjectPath
from headwater.updates.news import has_news
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.execution import late_rows
from headwater_spark.execution.late_rows import finish_replacements

__all__ = ["cache", "done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"fill-{number}/storage"), s3.place("places", f"fill-{number}/warehouse")


def attempt(number: int, known: int = 1) -> PendingReplacement:
    """One of several attempts at one range of silver."""
    metadata = json.dumps({"backfill": f"attempt-{number}"})
    return PendingReplacement("silver", "orders.silver@backfill-1", "c", metadata, {"stream": known})


@pytest.fixture
def filled(done, monkeypatch):
    """Silver, into which a stream writes; what is put back is noted, and not read by Spark."""
    done.state, done.silver, done.put = done.project.state_folder, done.table("silver"), []

    class Rows:
        def __init__(self, version: int) -> None:
            self.version = version

        def where(self, condition: str) -> Any:
            return SimpleNamespace(version=self.version)

    def write(target: DeltaAppend, rows: Any, transaction: Any) -> None:
        done.put.append(rows.version)
        commit(done, {transaction.application: 0})

    monkeypatch.setattr(late_rows, "rows_of_commit", lambda _, __, version: Rows(version))
    monkeypatch.setattr(DeltaAppend, "write", write)
    return done


def commit(filled, transactions: dict[str, int], **metadata: str) -> None:
    """A commit to silver, with the ids that it is known by."""
    known = CommitProperties(
        {"userMetadata": json.dumps(metadata)},
        app_transactions=[Transaction(*one) for one in transactions.items()],
    )
    append(filled.silver, pa.table({"id": pa.array([1], pa.int64())}), mode="append", commit_properties=known)


def record(filled, pending: PendingReplacement) -> None:
    """As a backfill that is killed after it was recorded."""
    with pending.written_down(filled.state):
        pass


def finish(filled) -> None:
    finish_replacements(None, filled.state, "silver", filled.silver)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metadata", "another"),
    [({"backfill": "attempt-1"}, False), ({"backfill": "attempt-2"}, True), ({}, False)],
)
def test_whose_commit_it_is(filled, metadata, another):
    """Another attempt's only where it says so: a commit that names none may be this one's, whose record then counts."""
    assert attempt(1).was_made_by_another(filled.state, metadata) is another


def test_killed_before_its_commit(filled):
    """Its record stays, because it might still commit; no update is started for it, and a second look changes nothing."""
    record(filled, attempt(1, known=0))
    for _ in range(2):
        finish(filled)
        assert list(pending_replacements(filled.state)) == [attempt(1, known=0)]
        assert not has_news(filled.project).moved
    assert filled.put == []


def test_a_driver_that_was_frozen_loses_nothing(filled):
    """It commits long after others have looked at its record: its late rows are put back by the next update."""
    record(filled, attempt(1, known=0))
    commit(filled, {"stream": 1})
    filled.complete("gold")
    finish(filled)
    commit(filled, {attempt(1).application: 0}, backfill="attempt-1")
    filled.complete("gold")
    assert has_news(filled.project).reasons == ("a backfill of silver was not finished",)
    finish(filled)
    assert filled.put == [1]
    assert list(pending_replacements(filled.state)) == []


def test_the_record_of_the_attempt_that_committed_counts(filled):
    """Of two attempts the second was recorded, and the first committed: what came before the second began is put back, too."""
    record(filled, attempt(1, known=0))
    commit(filled, {"stream": 1})
    record(filled, attempt(2, known=1))
    commit(filled, {"stream": 2})
    commit(filled, {attempt(1).application: 0}, backfill="attempt-1")
    finish(filled)
    assert filled.put == [1, 2]
    assert list(pending_replacements(filled.state)) == []


def test_the_second_attempt_ends_what_the_first_left(filled):
    """It commits: the first never will, and its record goes without any row put back for it."""
    record(filled, attempt(1, known=0))
    commit(filled, {"stream": 1})
    with attempt(2, known=1).written_down(filled.state):
        commit(filled, {attempt(2).application: 0}, backfill="attempt-2")
        late_rows.put_back_late_rows(None, filled.state, filled.silver, attempt(2, known=1))  # type: ignore[arg-type]
    finish(filled)
    assert filled.put == []
    assert list(pending_replacements(filled.state)) == []


def test_after_a_week_it_is_forgotten(filled):
    """A record of a week ago without a commit goes; a younger one stays."""
    record(filled, attempt(1))
    (file,) = (filled.state / "backfills" / "silver").iterdir()
    make_old(file, (pending_replacement._KEPT_ON_A_STORE - timedelta(hours=1)).total_seconds())
    finish(filled)
    assert len(list(pending_replacements(filled.state))) == 1
    make_old(file, timedelta(hours=2).total_seconds())
    finish(filled)
    assert list(pending_replacements(filled.state)) == []


class Killed(BaseException):
    """Nothing catches it."""


def loaded(pipeline) -> FlowCase:
    """Silver after its history was loaded: one commit that says where it ended, and no checkpoint."""
    write_rows(pipeline.table("bronze"), 1, 2)
    known = CommitProperties(
        {
            "userMetadata": json.dumps(
                {"pipeline": "orders", "flow": "silver", "epoch": 0, "end_offsets": [{"at": 2}]}
            )
        },
        app_transactions=[Transaction("orders.silver@0-history", 0)],
    )
    append(pipeline.table("silver"), pa.table({"id": [1, 2]}), mode="append", commit_properties=known)
    return case_of(pipeline)


def case_of(pipeline) -> FlowCase:
    return FlowCase(pipeline.project, pipeline.manifest, pipeline.flow("silver"))


@pytest.mark.parametrize("puts", range(6))
def test_a_stream_after_its_history_is_begun_whole(pipeline, monkeypatch, puts):
    """Killed after any write of the position: an update is refused rather than read all again, and the command goes on."""
    case = loaded(pipeline)
    position = ('{"reservoirVersion":2}',)
    written: list[ObjectPath] = []
    write = ObjectPath.write_bytes

    def dies(place: ObjectPath, data: bytes) -> int:
        if len(written) == puts:
            # Whoever is killed tidies nothing up.
            patched.setattr(whole_folders, "write_if_unchanged", lambda *_: False)
            raise Killed
        written.append(place)
        return write(place, data)

    with monkeypatch.context() as patched:
        patched.setattr(ObjectPath, "write_bytes", dies)
        try:
            open_at(case, position, {}, lambda: None)
        except Killed:
            assert puts < 5
        else:
            assert puts == 5
    after = case_of(pipeline)
    if puts == 5:
        assert after.start.checkpoint.epochs() == [1]
        assert after.damages == []
        return
    assert after.start.checkpoint.epochs() == []
    assert [damage.error.condition for damage in after.damages] == ["CHECKPOINT_LOST"]
    open_at(after, position, {}, lambda: None)
    again = case_of(pipeline)
    assert again.damages == []
    assert again.start.checkpoint.epochs() == [again.start.state.epoch] == [2]
