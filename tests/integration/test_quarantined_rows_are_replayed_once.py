"""Held rows are looked at and discarded without a JVM, and replayed through the flow's code of today, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import replay_quarantine
from headwater.commands.command_line import main
from headwater.errors import LeaseLost
from headwater.graph.pipeline_project import PipelineProject
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend, stage_append
from headwater_spark.replays.replay_marks import ReplayMarks

pytestmark = pytest.mark.usefixtures("adaptive")

SOURCE = """
@dp.table
@dp.expect_or_quarantine("whole", "id IS NOT NULL AND amount IS NOT NULL")
@dp.expect_or_drop("not_huge", "amount < 1000")
def orders():
    lines = spark.readStream.schema("body STRING, day STRING").json(LANDING)
    order = F.from_json("body", "id INT, amount INT")
    return lines.select("day", order.alias("o")).where("day <> 'never'").select("day", "o.*")
"""
# The parser learns another name for a column; huge orders and a day are known now.
MENDED = SOURCE.replace(
    'F.from_json("body", "id INT, amount INT")',
    'F.from_json(F.regexp_replace("body", "total", "amount"), "id INT, amount INT")',
)
LINES = [
    '{"id": 1, "amount": 5}',
    '{"id": 2, "total": 6}',
    '{"id": 3, "total": 2000}',
    "no json",
    '{"id": null, "amount": 9}',
]


def ran(case: Any, action: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """What an action of the verb answers; a replay in this process, as its program would."""
    if action == "replay":
        code, answer = case.call(replay_quarantine.main, *arguments)
    else:
        code, answer = case.call(main, *arguments, verb=("quarantine", action))
    return code, answer


def statuses(case: Any) -> dict[str, str]:
    """What became of each held line."""
    rows = case.rows("orders_quarantine", "_source_record, _status")
    return {json.loads(record)["body"]: status for record, status in rows}


def actions(case: Any, name: str) -> list[dict[str, Any]]:
    """What the event log has of somebody's actions."""
    records = [event["details"]["user_action"] for event in case.events(event_type="user_action")]
    return [action for action in records if action["action"] == name]


def first_update(case: Any) -> None:
    """One line is good, and four are held, the last of another day."""
    case.land([{"body": line, "day": "sun" if line is LINES[-1] else "mon"} for line in LINES])
    assert case.update()["orders"].quarantined_rows == 4


@pytest.fixture
def landed(kept: Any) -> Iterator[Any]:
    """A pipeline with one good line and four that are held."""
    with kept(SOURCE, first_update) as case:
        yield case


def test_list_show_and_discard(landed):
    """Rows are counted by reason, shown with their record, and marked with the reason of who discards them."""
    case = landed
    code, answer = ran(case, "list")
    assert (code, [(row["reason"], row["status"], row["rows"]) for row in answer["quarantine"]]) == (
        0,
        [("whole", "held", 4)],
    )
    code, answer = ran(case, "show", "orders", "--limit", "2")
    assert len(answer["rows"]) == 2
    bad = next(
        row for row in ran(case, "show", "orders")[1]["rows"] if row["source_record"]["body"] == "no json"
    )
    assert bad["row"] == {"day": "mon", "id": None, "amount": None}
    assert ran(case, "discard", "orders", "--reason", "all")[0] == 2
    code, answer = ran(case, "discard", "orders", "--id", bad["id"][:13], "--reason", "not ours")
    assert (code, answer["discarded"]) == (0, 1)
    assert statuses(case)["no json"] == "discarded"
    assert ran(case, "discard", "orders", "--id", bad["id"], "--reason", "again")[0] == 2
    assert ran(case, "show", "nope")[0] == 2
    (action,) = actions(case, "DISCARD_QUARANTINE")
    assert (action["reason"], action["rows"]) == ("not ours", 1)


def test_a_replay_runs_the_code_of_today(landed):
    """Through the mended parser one row passes, one is dropped, one is held still, and one is of a day that the query leaves out now."""
    case = landed
    case.rewrite(MENDED.replace("never", "sun"))
    code, answer = ran(case, "replay", "orders")
    (flow,) = answer["flows"]
    assert code == 0
    assert flow == {
        "flow": "orders",
        "method": "source",
        "replayed": 1,
        "held": 1,
        "dropped": 1,
        "left_out": 1,
        "files": 0,
        "damaged_files": 0,
    }
    assert case.rows("orders") == [("mon", 1, 5), ("mon", 2, 6)]
    assert statuses(case) == {
        LINES[1]: "replayed", LINES[2]: "discarded", LINES[3]: "held", LINES[4]: "discarded"
    }  # fmt: skip
    case.land([{"body": LINES[1], "day": "tue"}])
    assert case.update().state == "COMPLETED"
    assert case.rows("orders") == [("mon", 1, 5), ("mon", 2, 6), ("tue", 2, 6)]
    assert [action["replayed"] for action in actions(case, "REPLAY_QUARANTINE")] == [1]


def test_rows_are_corrected_by_hand(landed):
    """An expression corrects a column of the kept row, which is judged again; unknown columns are refused."""
    case = landed
    chosen = next(row["id"] for row in ran(case, "show", "orders")[1]["rows"] if row["row"]["amount"] == 9)
    assert ran(case, "replay", "orders", "--set", "nope=1")[0] == 2
    code, answer = ran(case, "replay", "orders", "--id", chosen, "--set", "id=amount * 10")
    assert (code, answer["flows"][0]["method"], answer["flows"][0]["replayed"]) == (0, "row", 1)
    assert case.rows("orders") == [("mon", 1, 5), ("sun", 90, 9)]


def test_a_replay_that_is_killed(landed, monkeypatch):
    """Before or after the table's commit: the next replay settles what was marked, and no row is there twice."""
    case = landed
    case.rewrite(MENDED)
    write = DeltaAppend.write

    def before(*_: object) -> None:
        raise RuntimeError("killed")

    def after(self: DeltaAppend, rows: Any, transaction: BatchTransaction) -> None:
        write(self, rows, transaction)
        raise RuntimeError("killed")

    for dying in (before, after):
        with monkeypatch.context() as patched:
            patched.setattr(DeltaAppend, "write", dying)
            assert ran(case, "replay", "orders")[0] == 1
        assert statuses(case)[LINES[1]] == "replaying"
    (flow,) = ran(case, "replay", "orders")[1]["flows"]
    assert (flow["replayed"], flow["held"]) == (0, 2)
    assert statuses(case)[LINES[1]] == "replayed"
    assert case.rows("orders") == [("mon", 1, 5), ("mon", 2, 6)]


class Turns:
    """A lease as on a store: the next replay gets it a minute after the last one stood still, which learns of it at its next look."""

    holder: object = None

    @contextmanager
    def next(self, *_: Any, **__: Any) -> Iterator[Any]:
        """In place of ``PipelineProject.lease``."""
        mine = self.holder = object()

        def check() -> None:
            if self.holder is not mine:
                raise LeaseLost("The lease was taken from it.")

        yield SimpleNamespace(check=check)


def test_a_replay_that_stood_still(landed, monkeypatch):
    """In the middle of its commit, before its commit, and before its marks: each time another one begins meanwhile, which takes what
    was marked for what a killed one left. The row comes once, by the last; the others say that they have lost the lease.
    """
    case = landed
    case.rewrite(MENDED)
    chosen = next(
        row["id"]
        for row in ran(case, "show", "orders")[1]["rows"]
        if row["source_record"]["body"] == LINES[1]
    )
    monkeypatch.setattr(PipelineProject, "lease", Turns().next)
    mark, write = ReplayMarks.mark, DeltaAppend.write
    ended: list[Any] = []

    def replay() -> None:
        code, answer = ran(case, "replay", "orders", "--id", chosen)
        ended.append(
            (code, answer.get("error", {}).get("condition"), [flow["replayed"] for flow in answer["flows"]])
        )

    def in_its_commit(target: DeltaAppend, rows: Any, transaction: BatchTransaction) -> None:
        staged = stage_append(rows, target.table, transaction)
        assert staged is not None
        monkeypatch.setattr(DeltaAppend, "write", before_commit)
        replay()
        staged.commit(transaction)

    def before_commit(*arguments: Any) -> None:
        monkeypatch.setattr(DeltaAppend, "write", write)
        monkeypatch.setattr(ReplayMarks, "mark", before_marks)
        replay()
        write(*arguments)

    def before_marks(*arguments: Any) -> int:
        monkeypatch.setattr(ReplayMarks, "mark", mark)
        replay()
        return mark(*arguments)

    monkeypatch.setattr(DeltaAppend, "write", in_its_commit)
    replay()
    # What is left of their marks is settled by the next one, which finds nothing to do.
    replay()
    lost = (3, "LEASE_LOST", [])
    assert ended == [(0, None, [1]), lost, lost, (1, "FLOW_INTERRUPTED", []), (0, None, [])]
    assert case.rows("orders") == [("mon", 1, 5), ("mon", 2, 6)]
    assert statuses(case) == {LINES[1]: "replayed"} | dict.fromkeys(LINES[2:], "held")


LINE = """
@dp.table
@dp.expect_or_quarantine("whole", "_corrupt_record IS NULL")
def lines():
    return spark.readStream.schema("id INT, _corrupt_record STRING").json(LANDING)
"""


def test_a_malformed_line_stays_malformed(pipeline):
    """The column of corrupt records comes back with the record: neither way of replaying takes the line for a good row."""
    case = pipeline(LINE)
    case.land([{"id": 1}, "{oops"])
    assert case.update()["lines"].quarantined_rows == 1
    for method in ("source", "row"):
        _, answer = ran(case, "replay", "lines", "--from", method)
        assert [(flow["method"], flow["held"]) for flow in answer["flows"]] == [(method, 1)]
    assert case.rows("lines") == [(1, None)]
    assert ran(case, "replay", "lines", "--rule", "hole")[0] == 2


NORTH = """
dp.create_streaming_table("orders", expect_all_or_quarantine={"positive": "amount > 0"})

@dp.append_flow(target="orders", name="north")
def north():
    return spark.readStream.schema("id INT, amount INT").json(LANDING + "/north")
"""
TWO = f"""{NORTH}
@dp.append_flow(target="orders", name="south")
def south():
    return spark.readStream.schema("id INT, amount INT").json(LANDING + "/south")
"""


def test_flows_into_one_table_are_replayed_each(pipeline, monkeypatch):
    """Two flows of one replay are two commits, neither of which hides the other; rows of a batch that is not done wait."""
    case = pipeline(TWO)
    for number, flow in enumerate(("north", "south")):
        case.land([{"id": number, "amount": -1}], flow)
    with monkeypatch.context() as patched:
        patched.setattr(StagedAppend, "commit", lambda *_: 1 / 0)
        assert case.update().state == "FAILED"
    case.rewrite(TWO.replace("amount > 0", "amount <> 0"))
    assert ran(case, "replay", "orders")[0] == 2
    case.rewrite(TWO)
    assert case.update().state == "COMPLETED"
    case.rewrite(TWO.replace("amount > 0", "amount <> 0"))
    code, answer = ran(case, "replay", "orders")
    assert (code, [flow["replayed"] for flow in answer["flows"]]) == (0, [1, 1])
    assert case.rows("orders") == [(0, -1), (1, -1)]
