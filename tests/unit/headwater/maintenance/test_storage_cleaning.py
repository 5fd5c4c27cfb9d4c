"""Old epochs, copies and leftovers go after their time, the live ones never, and nothing after a failure."""

from __future__ import annotations

import pytest
from tests.object_stores import make_old

from headwater.doctor.snapshots import take_snapshot
from headwater.event_log.details import UpdateState, create_update, update_progress
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter

LEFTOVERS = ("--only", "epochs,snapshots,orphans")


@pytest.fixture
def aged(kept):
    """Silver lives in epoch 2; 1 is young, 0 is old; a killed repair and a flow that is gone have left folders; of four copies a repair made the newest."""
    silver = kept.pipeline.checkpoint("silver")
    for epoch in (1, 2):
        (silver.epoch_folder(epoch) / "offsets").mkdir(parents=True)
        (silver.epoch_folder(epoch) / "offsets" / "0").write_text("v1\n{}\n-")
    # What a repair was filling when it was killed.
    given_up = silver.folder / ".3.x_9ab0yz"
    (given_up / "offsets").mkdir(parents=True)
    (given_up / "offsets" / "0").write_text("v1\n{}\n-")
    kept.old = [silver.epoch_folder(0)]
    kept.old += [kept.project.state_folder / "checkpoints" / "gone" / "gone"]
    (kept.old[1] / "0").mkdir(parents=True)
    (kept.old[1] / "flow.json").write_text("{}")
    reasons = ("asked for", "asked for", "before rewind", "before restore")
    taken = [take_snapshot(kept.project.state_folder, silver, reason=reason).name for reason in reasons]
    copies = [kept.project.state_folder / "snapshots" / "silver" / "silver" / name for name in taken]
    kept.old += [copies[0], copies[2]]
    kept.newest = copies[3]
    kept.newest_of_user = copies[1]
    kept.old.append(given_up)
    kept.pipeline.complete("silver", epoch=2)
    for folder in (*kept.old, kept.newest, kept.newest_of_user, silver.epoch_folder(2)):
        for path in [*folder.rglob("*"), folder]:
            make_old(path, 40 * 86400)
    return kept


def test_old_leftovers_go_and_what_lives_stays(aged):
    """The plan names them; --yes removes them; the live epoch, young ones, the newest copy and the newest that no repair made stay; the log tells it."""
    _, answer = aged.call(*LEFTOVERS)
    assert [step["kind"] for step in answer["plan"]["steps"]] == ["epochs", "snapshots", "orphans"]
    assert all(folder.exists() for folder in aged.old)
    code, answer = aged.call(*LEFTOVERS, "--yes")
    assert (code, len(answer["steps"])) == (0, 3)
    assert not any(folder.exists() for folder in aged.old)
    assert aged.newest.exists()
    assert aged.newest_of_user.exists()
    assert aged.pipeline.checkpoint("silver").epochs() == [1, 2]
    records = events(aged.project.state_folder, event_type="operation_progress")
    assert {item["details"]["operation_progress"]["chore"] for item in records} == {
        "epochs",
        "snapshots",
        "orphans",
    }


def test_no_empty_folder_stays_for_ever(aged):
    """Neither of a flow whose removal was killed before its last step, nor of a table that has no flow any more."""
    roots = [aged.project.state_folder / name for name in ("checkpoints", "snapshots")]
    folders = [roots[1] / "gone" / "gone", roots[1] / "gone", roots[1] / "away", roots[0] / "away"]
    for folder in folders[::-1]:
        folder.mkdir(exist_ok=True)
    for _ in range(2):
        for folder in (*folders, roots[0] / "gone"):  # what is removed below a folder changes it
            if folder.exists():
                make_old(folder, 40 * 86400)
        assert aged.call("--only", "orphans", "--yes")[0] == 0
    assert not any((root / name).exists() for root in roots for name in ("gone", "away"))
    assert (roots[0] / "silver" / "silver").is_dir()


def test_nothing_goes_after_a_failure(aged):
    """What a failed update has left may be needed to repair it."""
    with EventLogWriter(aged.project.state_folder, "orders", "orders", "u2") as writer:
        writer.emit("create_update", "begun", details=create_update())
        writer.emit("update_progress", "failed", details=update_progress(UpdateState.FAILED))
    _, answer = aged.call(*LEFTOVERS)
    why = [item["why"] for item in answer["plan"]["left_out"]]
    assert ["did not complete" in reason for reason in why] == [True] * 3
    assert aged.call(*LEFTOVERS, "--yes")[1]["steps"] == []
    assert all(folder.exists() for folder in aged.old)


def test_nothing_goes_where_the_sources_changed(aged):
    """A flow that is not in an old graph may be a new one."""
    (aged.project.folder / "transformations" / "tables.py").write_text("# others\n")
    _, answer = aged.call("--only", "orphans")
    assert "sources have changed" in answer["plan"]["left_out"][0]["why"]


def test_not_while_an_update_runs(aged):
    """The lease is respected; the plan needs none."""
    with aged.project.lease("somebody"):
        assert aged.call(*LEFTOVERS)[0] == 0
        code, answer = aged.call(*LEFTOVERS, "--yes")
    assert (code, answer["error"]["condition"]) == (3, "UPDATE_IN_PROGRESS")
    assert all(folder.exists() for folder in aged.old)


def test_a_pending_reset_keeps_its_epochs(aged):
    """A reset that a crash has left half done is finished by the next update, from what is there."""
    aged.pipeline.complete("silver", epoch=2, pending_epoch=3)
    assert aged.call("--only", "epochs")[1]["plan"]["steps"] == []


def test_an_epoch_that_has_not_completed_keeps_those_before_it(aged):
    """Until the live epoch has come to its end once, a repair may go back to an older one."""
    aged.pipeline.complete("silver", epoch=2, completed=False)
    assert aged.call("--only", "epochs")[1]["plan"]["steps"] == []


def test_an_epoch_behind_the_live_one_stays(aged):
    """A repair that was killed has filled it, or one that runs now is about to make it the live one: it is not an old one."""
    aged.pipeline.complete("silver", epoch=1)
    assert aged.call("--only", "epochs", "--yes")[0] == 0
    assert aged.pipeline.checkpoint("silver").epochs() == [1, 2]
