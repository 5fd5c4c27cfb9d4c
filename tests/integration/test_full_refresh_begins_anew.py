"""A full refresh gives what the sources still hold, under a new epoch, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.errors import RefusedForSafety, ResetNotAllowed
from headwater_spark.execution import resets

SOURCE = """
@dp.table
def silver():
    return dp.read_stream("bronze").where("id % 2 = 0")

@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)
"""
MORE = """
@dp.materialized_view
def total():
    return dp.read("silver").select(F.count("*").alias("n"), F.sum("id").alias("ids"))

@dp.table(table_properties={"pipelines.reset.allowed": "false"})
def kept():
    return spark.readStream.schema("id INT").json(LANDING)
"""


class Killed(BaseException):
    """Stands for the end of the process."""


def ids(*numbers: int) -> list[dict[str, Any]]:
    """Rows to land."""
    return [{"id": number} for number in numbers]


def epochs(case: Any, *flows: str) -> list[int]:
    """The live epochs of flows."""
    states = [case.checkpoint(flow).read_state() for flow in flows]
    return [state.epoch for state in states if state is not None]


def check_flow_ids(case: Any, first: Any, refreshed: Any) -> None:
    """All records that an update has of a flow, from its definition to its end, bear one id; a full refresh gives another."""
    ids = []
    for report in (first, refreshed):
        events = case.events(update_id=report.result.update_id)
        ids.append(
            {(e["origin"]["flow_name"], e["origin"]["flow_id"]) for e in events if e["origin"]["flow_name"]}
        )
        assert sorted(flow for flow, _ in ids[-1]) == ["bronze", "kept", "silver", "total"]
    same = {flow for flow, _ in ids[0] & ids[1]}
    assert (same >= {"kept"}, same & {"bronze", "silver"}) == (True, set())


def test_everything_anew(pipeline):
    """The rows are those that the sources hold now; old epochs and old versions stay; protected tables are kept. A view is
    recomputed though nothing moved; a reset of one flow reads all again, and its rows stay.
    """
    case = pipeline(SOURCE + MORE)
    case.land(ids(1, 2))
    case.land(ids(3, 4))
    first = case.update()
    assert first.state == "COMPLETED"
    before = case.version("bronze")
    identity = DeltaTable(str(case.table("bronze"))).metadata().id
    (case.landing / "00001.json").unlink()
    case.land(ids(6))
    check_refusals(case)
    refreshed = case.update(full_refresh_all=True)
    assert refreshed.state == "COMPLETED"
    check_flow_ids(case, first, refreshed)
    assert case.rows("bronze") == [(3,), (4,), (6,)]
    assert case.rows("silver") == [(4,), (6,)]
    assert case.rows("total") == [(2, 10)]
    assert case.rows("kept") == [(1,), (2,), (3,), (4,), (6,)]
    assert epochs(case, "bronze", "silver", "kept") == [1, 1, 0]
    assert case.checkpoint("bronze").epochs() == [0, 1]
    old = DeltaTable(str(case.table("bronze")), version=before)
    assert old.metadata().id == identity
    assert old.to_pyarrow_table().num_rows == 4

    case.land(ids(8))
    report = case.update(tables=("bronze", "silver", "total"))
    assert (report["bronze"].input_rows, report["silver"].input_rows) == (1, 1)
    assert case.rows("silver") == [(4,), (6,), (8,)]
    batches = [
        (r["origin"]["epoch"], r["origin"]["batch_id"]) for r in case.events(flow="bronze", level="METRICS")
    ]
    assert batches == [(0, 0), (1, 0), (1, 1)]
    check_a_view(case)
    check_a_reset(case)


def check_refusals(case):
    """A protected table, and a table whose reader would break: exit code 3, a way out, and nothing changed."""
    names = ("bronze", "silver", "kept", "total")
    before = [case.version(name) for name in names]
    with pytest.raises(ResetNotAllowed, match="kept"):
        case.update(full_refresh=("kept",))
    with pytest.raises(RefusedForSafety) as caught:
        case.update(full_refresh=("bronze",))
    assert "--full-refresh bronze,silver" in caught.value.remedy
    code, answer = case.run("--full-refresh=kept")
    assert (code, answer["state"], answer["error"]["condition"]) == (3, "REFUSED", "RESET_NOT_ALLOWED")
    assert [case.version(name) for name in names] == before
    assert epochs(case, "bronze", "silver", "kept") == [0, 0, 0]


def check_a_view(case):
    """A full refresh of a materialized view does its work though nothing moved; a plain update after it does not."""
    before = case.version("total")
    assert case.update(full_refresh=("total",))["total"].batches == 1
    assert case.version("total") == before + 1
    assert case.update(tables=("total",))["total"].batches == 0
    assert case.version("total") == before + 1


def check_a_reset(case):
    """`--reset-checkpoint` begins a new epoch of that flow alone: all is read again, and the rows stay."""
    code, answer = case.run("--reset-checkpoint=silver")
    assert (code, [flow["flow"] for flow in answer["flows"]]) == (0, ["silver"])
    assert case.rows("silver") == [(4,), (4,), (6,), (6,), (8,), (8,)]
    assert epochs(case, "bronze", "silver") == [1, 2]
    case.land(ids(10))
    case.update(tables=("bronze", "silver"))
    assert case.rows("silver") == [(4,), (4,), (6,), (6,), (8,), (8,), (10,)]


def kill_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the process before the n-th state of a flow is written."""
    write, calls = FlowCheckpoint.write_state, iter(range(1, 100))

    def killing(self: FlowCheckpoint, *arguments: Any) -> None:
        if next(calls) == number:
            raise Killed
        write(self, *arguments)

    monkeypatch.setattr(FlowCheckpoint, "write_state", killing)


def kill_after_emptying(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the process when the n-th table has been emptied."""
    empty: Callable[..., None] = resets.empty_table
    calls = iter(range(1, 100))

    def killing(*arguments: Any) -> None:
        empty(*arguments)
        if next(calls) == number:
            raise Killed

    monkeypatch.setattr(resets, "empty_table", killing)


def test_killed_in_between(pipeline):
    """Killed between the intents, the emptying and the new epochs: the next plain update makes it whole, and so on three times."""
    case = pipeline(SOURCE)
    case.land(ids(1, 2))
    case.update()
    landed = [1, 2]
    # The third state is written when the first table has been emptied.
    for kill, number in ((kill_at_write, 2), (kill_at_write, 3), (kill_after_emptying, 2)):
        with pytest.MonkeyPatch.context() as patch:
            kill(patch, number)
            with pytest.raises(Killed):
                case.update(full_refresh_all=True)
        landed += [max(landed) + 1, max(landed) + 2]
        case.land(ids(*landed[-2:]))
        report = case.update()
        assert report.statuses == {"bronze": "COMPLETED", "silver": "COMPLETED"}
        assert case.rows("bronze") == [(one,) for one in landed], (kill, number)
        assert case.rows("silver") == [(one,) for one in landed if one % 2 == 0], (kill, number)
    case.land(ids(12))
    assert case.update().state == "COMPLETED"
    assert case.rows("silver") == [(one,) for one in (2, 4, 6, 8, 12)]
