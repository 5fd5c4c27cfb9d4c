"""A repair or a discard whose process died before its record is recorded by whatever comes next."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.headwater.metrics.conftest import Pipeline
from tests.unit.headwater.quarantine.test_table import TYPES, entry

from headwater.checkpoints.begun_action import begun_action
from headwater.commands import quarantine
from headwater.commands.command_line import main
from headwater.doctor import surgery
from headwater.doctor.begun_actions import record_begun
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.quarantine import columns as c
from headwater.storage.delta_tables import append


class Killed(BaseException):
    """The process died here; nobody catches it."""


class Dying(EventLogWriter):
    """Dies where it should record."""

    def emit(self, *_: Any, **__: Any) -> bool:
        raise Killed


def call(done: Pipeline, *words: str) -> int:
    """The exit code of a verb."""
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    return main([*words, *roots])


def killed(done: Pipeline, module: Any, *words: str) -> None:
    """Run a verb that dies before its record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "EventLogWriter", Dying)
        with pytest.raises(Killed):
            call(done, *words)
    assert actions(done) == []


def actions(done: Pipeline) -> list[tuple[str, bool]]:
    """What is recorded of operators: each action, and whether that was late."""
    records = events(done.project.state_folder, event_type="user_action")
    about = [record["details"]["user_action"] for record in records]
    return [(each.get("repair", each["action"]), each.get("recorded_late", False)) for each in about]


def repair(done: Pipeline, *words: str) -> list[str]:
    return ["repair", str(done.project.folder), "silver", *words, "--yes"]


@pytest.fixture
def held(done: Pipeline) -> Pipeline:
    """The pipeline with two rows that a rule of silver kept out."""
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in c.MANAGED])
    rows = pa.Table.from_pylist([entry(1, "a"), entry(2, "a")], schema)
    append(done.table("silver_quarantine"), rows)
    return done


NEXT = {
    "a drop": (["drop", "DIR", "silver", "gold", "--yes"], ["DROP", "DROP"]),
    "a rename": (["rename", "DIR", "silver", "purified", "--yes"], ["RENAME"]),
    "the same repair": (["repair", "DIR", "silver", "--action=rewind", "--batch=0", "--yes"], ["rewind"]),
}


@pytest.mark.parametrize("after", ["a drop", "a rename", "the same repair"])
def test_a_repair(done: Pipeline, after: str):
    """The next command that changes something records it, once, before what it does itself."""
    (done.checkpoint("silver").epoch_folder(0) / "metadata").write_text('{"id":"first"}')
    killed(done, surgery, *repair(done, "--action=rewind", "--batch=0"))
    state = done.checkpoint("silver").read_state()
    assert state is not None
    assert state.epoch == 1
    words, own = NEXT[after]
    assert call(done, *[str(done.project.folder) if word == "DIR" else word for word in words]) == 0
    assert actions(done) == [("rewind", True), *((action, False) for action in own)]
    record_begun(done.project)
    assert len(actions(done)) == 1 + len(own)


def test_a_repair_that_came_to_nothing(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """Where no epoch was opened, there is nothing to record, and the next repair goes on as ever."""
    (done.checkpoint("silver").epoch_folder(0) / "metadata").write_text('{"id":"first"}')

    def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("headwater.doctor.open_epoch.make_folder", dies)
        with pytest.raises(Killed):
            call(done, *repair(done, "--action=rewind", "--batch=0"))
    assert begun_action(done.project.state_folder).record is not None
    record_begun(done.project)
    assert (begun_action(done.project.state_folder).record, actions(done)) == (None, [])


def test_a_repair_in_place(done: Pipeline):
    """Of a mend only its begin is known; the same one again has nothing left to do but to record that."""
    folder = done.checkpoint("silver").epoch_folder(0)
    (folder / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    (folder / "commits" / "0").write_text("")
    killed(done, surgery, *repair(done, "--action=mend"))
    assert call(done, *repair(done, "--action=mend")) == 0
    assert actions(done) == [("mend", True)]
    (record,) = events(done.project.state_folder, event_type="user_action")
    assert "was begun" in record["message"]


def test_a_flow_that_is_damaged_since(done: Pipeline):
    """Its damage is a finding of its own start, and keeps no other command from starting: what was begun is recorded as such."""
    (done.checkpoint("silver").epoch_folder(0) / "metadata").write_text('{"id":"first"}')
    killed(done, surgery, *repair(done, "--action=rewind", "--batch=0"))
    done.checkpoint("silver").state_file.write_text("{")
    assert call(done, "drop", str(done.project.folder), "gold", "--yes") == 0
    assert actions(done) == [("rewind", True), ("DROP", False)]


@pytest.mark.parametrize("again", [True, False], ids=["the same discard", "a drop"])
def test_a_discard(held: Pipeline, again: bool):
    """With the number of rows that it marked; also where the table goes right after."""
    words = ["quarantine", "discard", str(held.project.folder), "silver", "--all", "--reason=late"]
    killed(held, quarantine, *words)
    if again:
        assert call(held, *words) == 0
    else:
        assert call(held, "drop", str(held.project.folder), "silver", "gold", "--yes") == 0
    assert actions(held)[0] == ("DISCARD_QUARANTINE", True)
    assert len(actions(held)) == (1 if again else 3)
    record = events(held.project.state_folder, event_type="user_action")[0]
    assert record["message"].startswith("2 quarantined rows of silver were discarded: late")
    assert record["details"]["user_action"]["rows"] == 2


def test_a_discard_whose_record_is_there(held: Pipeline):
    """A process that died between its record and the end of what it had begun is not recorded twice."""
    killed(
        held,
        quarantine,
        "quarantine",
        "discard",
        str(held.project.folder),
        "silver",
        "--all",
        "--reason=late",
    )
    file = held.project.state_folder / "action.json"
    begun = file.read_text()
    for _ in range(2):
        file.write_text(begun)
        record_begun(held.project)
        assert begun_action(held.project.state_folder).record is None
    assert actions(held) == [("DISCARD_QUARANTINE", True)]
