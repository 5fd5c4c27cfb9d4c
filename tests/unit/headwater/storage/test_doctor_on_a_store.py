"""The doctor does on S3 what it does on a disk: plans, costs, new epochs, copies."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.doctor.test_new_epoch_plan import *  # noqa: F403
from tests.unit.headwater.doctor.test_open_epoch import *  # noqa: F403
from tests.unit.headwater.doctor.test_open_epoch import content
from tests.unit.headwater.doctor.test_reprocessed_rows import *  # noqa: F403
from tests.unit.headwater.metrics.conftest import done, pipeline

from headwater.commands.command_line import main
from headwater.doctor.snapshots import snapshots_of
from headwater.event_log.reader import events

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"doctor-{number}/storage"), s3.place("places", f"doctor-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


def test_the_verbs(done, capsys):
    """A copy is taken, shown and restored by the command line; the record of the repair names the copy that it took before."""
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    folder = str(done.project.folder)
    assert main(["checkpoints", "snapshot", folder, "silver", *roots]) == 0
    (first,) = snapshots_of(done.project.state_folder, "silver", "silver")
    assert first.name in capsys.readouterr().out
    assert main(["checkpoints", "inspect", folder, "silver", *roots]) == 0
    assert first.name in capsys.readouterr().out
    assert (
        main(["checkpoints", "restore", folder, "silver", f"--snapshot={first.name}", "--yes", *roots]) == 0
    )
    assert content(done.checkpoint("silver").live_folder()).keys() >= {"offsets/0", "commits/0", "metadata"}
    before = snapshots_of(done.project.state_folder, "silver", "silver")[-1]
    (record,) = events(done.project.state_folder, event_type="user_action")
    assert record["details"]["user_action"]["snapshot"] == before.name != first.name
