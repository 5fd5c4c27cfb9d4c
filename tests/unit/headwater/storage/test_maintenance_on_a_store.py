"""Maintenance does the same where storage and warehouse are on S3."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from types import SimpleNamespace

import obstore
import pytest
from tests.object_stores import make_old
from tests.unit.headwater.maintenance import test_file_layout as layout
from tests.unit.headwater.maintenance import test_maintain as maintaining
from tests.unit.headwater.maintenance import test_storage_cleaning as cleaning
from tests.unit.headwater.maintenance.conftest import kept
from tests.unit.headwater.maintenance.test_storage_cleaning import *  # noqa: F403
from tests.unit.headwater.maintenance.test_storage_cleaning import LEFTOVERS, aged
from tests.unit.headwater.maintenance.test_vacuuming import *  # noqa: F403
from tests.unit.headwater.metrics.conftest import done, pipeline

from headwater.doctor.snapshots import snapshots_of
from headwater.errors import LeaseLost
from headwater.leases import store_lease
from headwater.maintenance.chore import Step
from headwater.maintenance.maintain import maintain
from headwater.storage import walking

__all__ = ["aged", "done", "kept", "pipeline"]
_NUMBERS = itertools.count()

test_the_plan_changes_nothing = layout.test_the_plan_changes_nothing
test_small_files_become_one = layout.test_small_files_become_one
test_a_damaged_table_does_not_stop_the_others = maintaining.test_a_damaged_table_does_not_stop_the_others
test_the_log_gets_a_checkpoint = maintaining.test_the_log_gets_a_checkpoint_with_its_transactions


class Killed(BaseException):
    """Nothing catches it."""


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"kept-{number}/storage"), s3.place("places", f"kept-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cleaning, "take_snapshot", copied)


def copied(state_folder, checkpoint, *, reason):
    """A copy of a checkpoint as it lies on a store, and the folder of one that was interrupted."""
    root = state_folder / "snapshots" / checkpoint.folder.parent.name / checkpoint.folder.name
    name = f"copy-{next(_NUMBERS):05d}"
    about = {
        **dict.fromkeys(("dataset", "flow"), checkpoint.folder.name),
        "name": name,
        "epoch": 0,
        "last_batch": 0,
        "taken_at": name,
        "reason": reason,
    }
    for folder in (root / name, root / "interrupted"):
        (folder / "checkpoint" / "offsets" / "0").write_text("v1")
    (root / name / "snapshot.json").write_text(json.dumps(about))
    return SimpleNamespace(**about)


def test_an_interrupted_copy_goes(aged):
    """What a driver has left that was killed while it copied goes after its time, like older copies."""
    interrupted = aged.newest.with_name("interrupted")
    for file in interrupted.rglob("*"):
        make_old(file, 40 * 86400)
    assert interrupted.is_dir()
    assert aged.call("--only", "snapshots", "--yes")[0] == 0
    assert not interrupted.is_dir()
    assert aged.newest.is_dir()


def test_marks_of_hadoop_do_no_harm(aged, s3):
    """The empty objects that Hadoop leaves for folders are no folders: nothing is to be done about one without content."""
    mark = aged.project.state_folder / "checkpoints" / "away" / "away"
    s3.put_mark(mark)
    _, answer = aged.call(*LEFTOVERS)
    assert [step["files"] for step in answer["plan"]["steps"]] == [3, 4, 1]
    assert answer["plan"]["left_out"] == []


@pytest.mark.parametrize("killed_after", [0, 1])
def test_half_a_copy_is_none(aged, monkeypatch, killed_after):
    """Killed between any two requests, what is left of a copy is not taken for one, and the next run removes it."""
    victim = aged.old[2]
    monkeypatch.setattr(walking, "_A_REQUEST", 1)
    removed = []

    def dies(client, keys):
        if isinstance(keys, list):
            if len(removed) == killed_after:
                raise Killed
            removed.extend(keys)
        obstore_delete(client, keys)

    obstore_delete = obstore.delete
    with monkeypatch.context() as patched:
        patched.setattr(obstore, "delete", dies)
        with pytest.raises(Killed):
            aged.call("--only", "snapshots", "--yes")
    names = [one.name for one in snapshots_of(aged.project.state_folder, "silver", "silver")]
    assert (victim.name in names) is (killed_after == 0)
    assert aged.call("--only", "snapshots", "--yes")[0] == 0
    assert not victim.is_dir()


def test_without_its_lease_nothing_is_rewritten(kept, monkeypatch):
    """A chore whose lease could not be renewed while it looked is not carried out, nor is what comes after it."""

    class Slow(maintaining.Slow):
        def look(self):
            monkeypatch.setattr(store_lease, "LIFETIME", timedelta(0))
            monkeypatch.setattr(store_lease, "WATCHED", timedelta(0))
            return Step(self.kind, self.subject, "rewrite")

    chores = [Slow(kept.project), Slow(kept.project)]
    with pytest.raises(LeaseLost):
        maintain(kept.project, chores)
    assert [chore.done for chore in chores] == [False, False]
