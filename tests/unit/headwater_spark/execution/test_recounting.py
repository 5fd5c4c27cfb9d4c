"""Which batches are evaluated again after a crash, and what is believed of the result."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, plan_batch, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.layout import FlowState
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater_spark.execution import recounting
from headwater_spark.execution.batch_counts import Recount
from headwater_spark.rules.expectations import Quality, RuleCounts

RULE = Expectation("r", "id > 0", ViolationAction.DROP)


class Recounted:
    """A flow whose driver was killed; ``counted``: the batches that were evaluated again."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counted: list[int] = []
        self.run: Any = run_of(context_of(root), dataset(), flow())
        self.folder = Path(str(self.run.checkpoint.epoch_folder(0)))

        def count(_run: object, _state: object, _frame: object, batch_id: int) -> Recount:
            self.counted.append(batch_id)
            return Recount(batch_id)

        monkeypatch.setattr(recounting, "_recount", count)

    def of(self, *unrecorded: int) -> dict[int, Recount]:
        """What is known of the batches."""
        return recounting.recount_batches(self.run, FlowState(), None, unrecorded)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identity", "done", "written"),
    [
        ("p.orders@0", False, [4, 5]),
        ("the query", False, [4, 5]),
        ("p.orders@1", False, [4]),
        ("p.orders@0", True, [4]),
    ],
)
def test_a_batch_that_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identity: str, done: bool, written: list[int]
):
    """It counts where its table has it, under the flow's identity or the query's, and nothing says that it is done."""
    recounted = Recounted(tmp_path, monkeypatch)
    plan_batch(recounted.folder, 4, {"n": 4}, done=True)
    plan_batch(recounted.folder, 5, {"n": 5}, done=done)
    (recounted.folder / "metadata").write_text('{"id":"the query"}')
    commit(Path(str(recounted.run.delta_table)), transactions={identity: 5})
    assert list(recounted.of(4)) == written


def test_only_the_last_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the event log was lost all batches are without a record: the last ten are evaluated, of the others it is said why not."""
    recounted = Recounted(tmp_path, monkeypatch)
    results = recounted.of(*range(12))
    assert recounted.counted == list(range(2, 12))
    assert list(results) == list(range(12))
    assert ["only the last 10" in (one.unknown or "") for one in results.values()] == [True] * 2 + [
        False
    ] * 10


def progress(batch_id: int, rows: int, counts: dict[str, int] | None = None) -> Any:
    """What Spark reports of a batch."""
    observed = {} if counts is None else {"headwater": SimpleNamespace(asDict=lambda: counts)}
    return SimpleNamespace(batchId=batch_id, numInputRows=rows, observedMetrics=observed)


def counts_of(*reports: Any, state: FlowState | None = None, rule: Expectation = RULE) -> Recount:
    """What is believed of batch 3."""
    query: Any = SimpleNamespace(recentProgress=list(reports))
    return recounting._counts_of(dataset(expectations=(rule,)), state or FlowState(), query, 3)


def test_what_the_batch_gave():
    """The counts are those of the batch that was asked for, by its rules."""
    counts = {"rows": 5, "dropped": 2, "rule_0": 2}
    found = counts_of(progress(2, 9), progress(3, 5, counts), progress(4, 9))
    assert (found.input_rows, found.quality) == (5, Quality(5, 2, (RuleCounts("r", 3, 2),)))
    assert counts_of(progress(2, 9)).unknown == "Spark did not report the batch when it was evaluated again"


def test_a_batch_without_rows():
    """Its sources have lost them, unless the query keeps state: that has batches that only close windows."""
    assert counts_of(progress(3, 0)).unknown == "its sources no longer have its rows"
    stateful = FlowState(state_settings={"spark.sql.shuffle.partitions": "2"})
    assert counts_of(progress(3, 0), state=stateful) == Recount(0, None, {})


def test_rows_that_are_judged_one_by_one():
    """Rules that keep rows out whole are not counted by the query: their counts are in the commit."""
    judged = Expectation("r", "id > 0", ViolationAction.QUARANTINE)
    assert counts_of(progress(3, 5, {"rows": 5, "dropped": 0, "rule_0": 0}), rule=judged).quality is None


@pytest.mark.parametrize(("changed", "others"), [(["/a"], ""), (["/a", "/b", "/c"], " and 2 others")])
def test_files_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: list[str], others: str):
    """The batch is not what it was; nothing is run for it."""
    run: Any = run_of(context_of(tmp_path), dataset(), flow())
    monkeypatch.setattr(recounting, "changed_files", lambda *_: changed)
    answer = recounting._recount(run, FlowState(), None, 3)  # type: ignore[arg-type]
    assert answer.unknown == f"files that it read were deleted or modified: /a{others}"


def test_the_copy_goes_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A batch that can't be evaluated has no counts, with the reason; an update that is told to stop ends at once."""
    run: Any = run_of(context_of(tmp_path), dataset(), flow())
    copy = Path(str(run.checkpoint.folder)) / ".recount"
    monkeypatch.setattr(recounting, "changed_files", lambda *_: [])
    monkeypatch.setattr(recounting, "lay_out_batch", lambda *_: copy.mkdir(parents=True))
    monkeypatch.setattr(type(run), "settings", lambda *_: nullcontext())
    for error in (RuntimeError("no\nmore"), InterruptedError("stop")):

        def start(*_: object, error: Exception = error) -> None:
            assert copy.exists()
            raise error

        monkeypatch.setattr(recounting, "_start", start)
        if isinstance(error, InterruptedError):
            with pytest.raises(InterruptedError):
                recounting._recount(run, FlowState(), None, 3)  # type: ignore[arg-type]
        else:
            answer = recounting._recount(run, FlowState(), None, 3)  # type: ignore[arg-type]
            assert (answer.unknown or "").startswith("the batch can't be evaluated again. ")
            assert "\n" not in (answer.unknown or "")
        assert not copy.exists()


@pytest.mark.parametrize("told", [False, True])
def test_an_update_that_is_told_to_stop(told: bool):
    """The query is stopped, and nothing is counted; else it is waited for."""
    stopped: list[bool] = []
    ends = iter([False, False, True])
    query: Any = SimpleNamespace(awaitTermination=lambda _: next(ends), stop=lambda: stopped.append(True))
    requested = threading.Event()
    if told:
        requested.set()
        with pytest.raises(InterruptedError):
            recounting._await(SimpleNamespace(stop_requested=requested), query)  # type: ignore[arg-type]
    else:
        recounting._await(SimpleNamespace(stop_requested=requested), query)  # type: ignore[arg-type]
    assert stopped == ([True] if told else [])
