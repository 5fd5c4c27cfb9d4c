"""The identity of a batch, and what is done with one that comes again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_spark.update_parts import plan_batch

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.errors import CheckpointUnreadable, FlowFailed
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.execution.foreach_batch import BatchWriter
from headwater_spark.execution.targets.user_function import UserFunction

NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1)


class Target:
    """Remembers what it was asked and given. ``has_it``: whether it knows each batch already."""

    def __init__(self, *, passes: int = 1, has_it: bool = False, error: Exception | None = None) -> None:
        self.passes, self._has_it, self._error = passes, has_it, error
        self.looked_up: list[int] = []
        self.written: list[BatchTransaction] = []

    def has(self, transaction: BatchTransaction) -> bool:
        self.looked_up.append(transaction.batch_id)
        return self._has_it

    def write(self, rows: Any, transaction: BatchTransaction) -> None:
        if self._error is not None:
            raise self._error
        self.written.append(transaction)


class Rows:
    """A batch's frame: whether it is kept, and how often it was read to its end."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def persist(self, _: Any) -> None:
        self.calls.append("persist")

    def unpersist(self) -> None:
        self.calls.append("unpersist")

    @property
    def write(self) -> Any:
        def mode(name: str) -> Any:
            return SimpleNamespace(save=lambda: self.calls.append(f"read to the end ({name})"))

        return SimpleNamespace(format=lambda name: SimpleNamespace(mode=mode) if name == "noop" else None)


def writer(checkpoint: Path, target: Target, **more: Any) -> BatchWriter:
    """A writer of epoch 3 of a flow."""
    metadata = {"pipeline": "p", "flow": "f", "epoch": 3}
    return BatchWriter(target, "p.f@3", checkpoint, metadata, **{"fence": lambda: None, **more})


def test_an_id_is_of_one_epoch_of_one_flow():
    """The id has pipeline, flow and epoch, and is the one by which everyone else looks for it."""
    assert FlowIdentity("p", "f").application(3) == "p.f@3"


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 50)), unique=True, min_size=2))
def test_no_two_epochs_share_an_id(names):
    """Another pipeline, flow or epoch is another id."""
    assert len({FlowIdentity(pipeline, flow).application(epoch) for pipeline, flow, epoch in names}) == len(
        names
    )


def test_what_a_batch_commits_with(tmp_path: Path):
    """Version is the batch's number; the metadata has pipeline, flow, epoch, batch and where each source ended."""
    plan_batch(tmp_path, 7, {"t": {"0": 5}}, None)
    target = Target()
    writer(tmp_path, target)(Rows(), 7)  # type: ignore[arg-type]
    (transaction,) = target.written
    assert (transaction.application, transaction.batch_id) == ("p.f@3", 7)
    assert json.loads(transaction.user_metadata) == {
        "pipeline": "p", "flow": "f", "epoch": 3, "batch": 7, "end_offsets": [{"t": {"0": 5}}, None],
    }  # fmt: skip


def test_more_metadata_keeps_the_identity():
    """What a target adds to the metadata changes neither id, number, nor what was there."""
    before = BatchTransaction("a", 4, '{"flow": "f", "batch": 4}')
    after = before.with_metadata(quality={"rows": 1})
    assert (after.application, after.batch_id) == ("a", 4)
    assert json.loads(after.user_metadata) == {"flow": "f", "batch": 4, "quality": {"rows": 1}}


def test_a_batch_that_the_table_has_is_not_written_again(tmp_path: Path):
    """The first batch of a run may be one that a killed driver left: only it is asked for; later ones are new."""
    for batch_id in (7, 8):
        plan_batch(tmp_path, batch_id, {})
    target = Target(has_it=True)
    write = writer(tmp_path, target)
    write(Rows(), 7)  # type: ignore[arg-type]
    assert (target.looked_up, target.written) == ([7], [])
    write(Rows(), 8)  # type: ignore[arg-type]
    assert target.looked_up == [7]
    assert [one.batch_id for one in target.written] == [8]


@pytest.mark.parametrize(
    ("passes", "stateful", "has_it", "calls"),
    [
        (1, False, False, []),
        (2, False, False, ["persist", "unpersist"]),
        (1, True, False, []),  # the target has read them to the end
        (1, True, True, ["read to the end (overwrite)"]),
        (2, True, False, ["persist", "read to the end (overwrite)", "unpersist"]),
        (2, False, True, ["persist", "unpersist"]),
    ],
)
def test_what_is_kept_and_what_is_read_to_the_end(tmp_path: Path, passes, stateful, has_it, calls):
    """Rows are kept for a target that reads them more than once; those of a query with state are always read whole."""
    plan_batch(tmp_path, 0, {})
    rows = Rows()
    writer(tmp_path, Target(passes=passes, has_it=has_it), stateful=stateful)(rows, 0)  # type: ignore[arg-type]
    assert rows.calls == calls


def test_the_right_to_write_is_asked_before_each_batch(tmp_path: Path):
    """A driver that lost its lease writes nothing more, and does not even ask the table."""
    for batch_id in (0, 1):
        plan_batch(tmp_path, batch_id, {})
    left, target = [None], Target()

    def fence() -> None:
        left.pop()

    write = writer(tmp_path, target, fence=fence)
    write(Rows(), 0)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        write(Rows(), 1)  # type: ignore[arg-type]
    assert [one.batch_id for one in target.written] == [0]
    assert isinstance(write.error, IndexError)


def test_an_error_is_kept_as_it_was(tmp_path: Path):
    """What the target raised is there for whoever names it, and what was kept is given back."""
    plan_batch(tmp_path, 0, {})
    rows, error = Rows(), ValueError("no")
    write = writer(tmp_path, Target(passes=2, error=error))
    with pytest.raises(ValueError, match="no"):
        write(rows, 0)  # type: ignore[arg-type]
    assert write.error is error
    assert rows.calls == ["persist", "unpersist"]


def test_without_its_plan_a_batch_is_not_written(tmp_path: Path):
    """Where a batch ends is part of its identity: a checkpoint that does not say is refused before the table is asked."""
    target = Target()
    with pytest.raises(CheckpointUnreadable):
        writer(tmp_path, target)(Rows(), 0)  # type: ignore[arg-type]
    assert (target.looked_up, target.written) == ([], [])


def test_a_sinks_function_that_calls_exit(tmp_path: Path):
    """The exit would end the thread that answers Spark, and the update would never end: it is an error of the flow."""
    session = SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None))
    rows: Any = SimpleNamespace(sparkSession=session, persist=lambda _: None, unpersist=lambda: None)
    plan_batch(tmp_path, 0, {"logOffset": 0})
    write = writer(tmp_path, UserFunction(lambda *_: sys.exit(3), lambda _: None))  # type: ignore[arg-type]
    with pytest.raises(FlowFailed, match=r"exit\(3\) in batch 0") as raised:
        write(rows, 0)
    assert write.error is raised.value
