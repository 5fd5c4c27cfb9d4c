"""Copies of a checkpoint are in the order in which they were taken, whatever the clocks of the machines say."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from headwater.doctor import snapshots as module
from headwater.doctor.snapshots import remove_snapshot, snapshots_of, take_snapshot

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Clock(datetime):
    """A machine's clock; ``ahead``: by how much it is wrong."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz=None):
        """The time that it shows."""
        return NOW + cls.ahead


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_the_newest_is_the_one_that_was_taken_last(done, monkeypatch, hours):
    """A second machine whose clock is behind takes a copy behind that of the first; its own copies follow each other, too."""
    checkpoint, state = done.checkpoint("silver"), done.project.state_folder
    monkeypatch.setattr(module, "datetime", Clock)
    taken = []
    for ahead in (0, hours, hours):
        monkeypatch.setattr(Clock, "ahead", timedelta(hours=ahead))
        snapshot = take_snapshot(state, checkpoint, reason="test")
        assert snapshot is not None
        taken.append(snapshot.name)
    assert [snapshot.name for snapshot in snapshots_of(state, "silver", "silver")] == taken
    assert len({*taken}) == 3


@pytest.mark.parametrize("name", ["other", "99999999T999999999999Z-epoch0", "20260504T120000000000Z"])
def test_folders_of_others(done, name):
    """A folder that has no name of ours says nothing about time."""
    (done.project.state_folder / "snapshots" / "silver" / "silver" / name).mkdir(parents=True)
    snapshot = take_snapshot(done.project.state_folder, done.checkpoint("silver"), reason="test")
    assert snapshot is not None
    assert datetime.now(UTC) - datetime.fromisoformat(snapshot.taken_at) < timedelta(days=1)


def test_a_copy_of_which_a_part_has_gone_is_none(done, monkeypatch):
    """Whoever is killed while it removes one leaves nothing that a restore would take for whole; the next one removes the rest."""
    state = done.project.state_folder
    taken = take_snapshot(state, done.checkpoint("silver"), reason="test")
    assert taken is not None

    def dies(_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", dies)
        with pytest.raises(KeyboardInterrupt):
            remove_snapshot(taken.folder)
    assert taken.checkpoint.is_dir()
    assert snapshots_of(state, "silver", "silver") == []
    remove_snapshot(taken.folder)
    assert not taken.folder.exists()
