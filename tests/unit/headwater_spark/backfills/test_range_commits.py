"""The commit of a range: its identity, what stands in its way, and rows that a live stream wrote meanwhile."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import RecordedFrame
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.backfills.backfill_range import BackfillMode, BackfillRange, RangeKind
from headwater.backfills.conditions import FewerRows, RangeAlreadyWritten, RangeNotReadYet
from headwater.backfills.live_position import LivePosition
from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.definitions.flow import Replacement
from headwater.graph.manifest import FlowEntry
from headwater_spark.backfills import range_rows, table_backfill
from headwater_spark.backfills.event_slice import SliceSize
from headwater_spark.backfills.held_rows import BACKFILL_EPOCH
from headwater_spark.backfills.table_backfill import fill_table
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_merge import DeltaMerge
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.execution import late_rows
from headwater_spark.execution.flow_writer import target_of
from headwater_spark.execution.late_rows import conflicts, finish_replacements, put_back_late_rows
from headwater_spark.rules.expectations import Quality

APPEND, REPLACE, MERGE = BackfillMode.APPEND, BackfillMode.REPLACE_WHERE, BackfillMode.MERGE
VERSIONS = BackfillRange(RangeKind.VERSION, 3, 7)
DAYS = BackfillRange(
    RangeKind.EVENT_TIME, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), "at"
)
ORDERS = dataset()


def plan_of(mode: BackfillMode = APPEND, chosen: BackfillRange = VERSIONS, **more: Any) -> TablePlan:
    """The plan of a table with one flow."""
    condition = "x" if chosen is DAYS else None
    plan = TablePlan(ORDERS, (flow(),), mode, chosen, (), condition, False)
    return replace(plan, **more)


def arguments(chosen: BackfillRange = VERSIONS, **more: Any) -> BackfillArguments:
    """What was typed."""
    return BackfillArguments("", ("orders",), chosen, None, **more)


class Filling:
    """What ``fill_table`` does over tables that are only counted."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, kept: int = 5, there: int = 5
    ) -> None:
        self.context = context_of(tmp_path, ORDERS)
        self.quarantined: list[Any] = []
        self.written: list[Any] = []
        self.measured: list[Any] = []
        quality = Quality(kept + 3, 2, (), 1)
        applications = ("query", "p.orders@0")
        # What the stream of a flow had written when its rows were read.
        self.seen: dict[str, int] = {}

        @contextmanager
        def rows(context: Any, plan: Any, one: Any) -> Any:
            position = LivePosition((), (), self.seen.get(one.name, 9), applications, tmp_path)
            position = None if one.once else position  # type: ignore[assignment]
            yield range_rows.RangeRows(one, None, RecordedFrame(), quality, position, 10)  # type: ignore[arg-type]

        def size(_: Any, __: Any, condition: str | None, version: int | None) -> SliceSize:
            self.measured.append((condition, version))
            return SliceSize(there, 70, 2.0)

        def write(_: Any, __: Any, parts: Any, transaction: Any, known: Any) -> None:
            self.written.append((transaction, known))

        monkeypatch.setattr(table_backfill, "range_rows", rows)
        monkeypatch.setattr(table_backfill, "slice_size", size)
        monkeypatch.setattr(table_backfill, "hold_rows", lambda *given: self.quarantined.append(given[-1]))
        monkeypatch.setattr(table_backfill, "_write", write)

    def fill(self, plan: TablePlan, **more: Any) -> list[Any]:
        return fill_table(self.context, plan, arguments(plan.chosen, **more))

    @property
    def table(self) -> Path:
        return self.context.table_path(ORDERS)


def test_the_identity_of_a_range(monkeypatch, tmp_path: Path):
    """The same range, mode, keys and definition is the same commit, however often; anything else is another one."""
    filling = Filling(monkeypatch, tmp_path, there=0)
    plans = [
        plan_of(), plan_of(MERGE), plan_of(MERGE, keys=("id",)), plan_of(chosen=replace(VERSIONS, end=8)),
        plan_of(flows=(flow("other", "orders"),)), plan_of(dataset=dataset("more")),
    ]  # fmt: skip
    for plan in [*plans, *plans]:
        filling.fill(plan)
    ids = [transaction.application for transaction, _ in filling.written]
    assert ids[: len(plans)] == ids[len(plans) :]
    assert len(set(ids)) == len(plans)
    filling.context.pipeline.manifest.source_hash = "another"  # type: ignore[misc]
    filling.fill(plan_of())
    assert filling.written[-1][0].application not in ids
    assert all(one.startswith("p.orders@backfill-") for one in ids[:5])
    assert ids[5].startswith("p.more@backfill-")
    transaction, _ = filling.written[0]
    assert transaction.batch_id == 0
    assert json.loads(transaction.user_metadata) == {
        "pipeline": "p", "flow": "orders", "backfill": "u1", "request": None, "range": VERSIONS.as_dict(), "mode": "append",
    }  # fmt: skip


def test_once_more(monkeypatch, tmp_path: Path):
    """--again is another commit, the same for a retry of one request, another for each request without a name."""
    filling = Filling(monkeypatch, tmp_path, there=0)
    for more in (
        {},
        {"again": True, "request_id": "r"},
        {"again": True, "request_id": "r"},
        {"again": True},
        {"again": True},
    ):
        filling.fill(plan_of(), **more)
    ids = [transaction.application for transaction, _ in filling.written]
    assert ids[1] == ids[2]
    assert len({ids[0], ids[1], ids[3], ids[4]}) == 4


def test_a_range_that_was_done_before(monkeypatch, tmp_path: Path):
    """Its commit is in the table's log: nothing is read or written but what a killed backfill left undone."""
    filling = Filling(monkeypatch, tmp_path, there=0)
    filling.fill(plan_of())
    application = filling.written[0][0].application
    commit(filling.table, transactions={application: 0})
    ended: list[Any] = []
    monkeypatch.setattr(table_backfill, "finish_replacements", lambda *given: ended.append(given[2]))
    for dry_run in (True, False):
        (report,) = filling.fill(plan_of(), dry_run=dry_run)
        assert (report.state, report.version, report.output_rows) == ("DONE_BEFORE", 0, 0)
    assert len(filling.written) == 1
    assert ended == ["orders"]


@pytest.mark.parametrize(
    ("mode", "kept", "there", "more", "refused"),
    [
        (APPEND, 5, 0, {}, None),
        (APPEND, 5, 1, {}, RangeAlreadyWritten),
        (REPLACE, 5, 5, {}, None),
        (REPLACE, 4, 5, {}, FewerRows),
        (REPLACE, 4, 5, {"allow_fewer_rows": True}, None),
        (REPLACE, 6, 5, {}, None),
        (MERGE, 4, 5, {}, None),
    ],
)
def test_counts_that_stand_in_the_way(monkeypatch, tmp_path: Path, mode, kept, there, more, refused):
    """Rows that are there are not added once more, and not replaced by fewer, unless that is meant; nothing was written."""
    filling = Filling(monkeypatch, tmp_path, kept=kept, there=there)
    if refused is not None:
        with pytest.raises(refused):
            filling.fill(plan_of(mode, DAYS), **more)
        assert (filling.quarantined, filling.written) == ([], [])
        return
    (report,) = filling.fill(plan_of(mode, DAYS), **more)
    assert (report.state, report.input_rows, report.output_rows) == ("COMPLETED", kept + 3, kept)
    assert (report.dropped_rows, report.quarantined_rows) == (2, 1)
    assert report.replaced_rows == (there if mode is REPLACE else 0)
    assert filling.measured == [("x", 9)]
    (transaction, known), = filling.written  # fmt: skip
    assert filling.quarantined == [transaction]
    assert known == {"query": 9, "p.orders@0": 9}


def test_a_dry_run_writes_nothing(monkeypatch, tmp_path: Path):
    """It says what would be refused; where rows would become fewer it says so without an error."""
    filling = Filling(monkeypatch, tmp_path, kept=4, there=5)
    (report,) = filling.fill(plan_of(REPLACE, DAYS), dry_run=True)
    assert (report.state, "FEWER_ROWS" in report.note) == ("PLANNED", True)
    (report,) = filling.fill(plan_of(REPLACE, DAYS), dry_run=True, allow_fewer_rows=True)
    assert report.note == ""
    (report,) = Filling(monkeypatch, tmp_path, kept=5, there=5).fill(plan_of(REPLACE, DAYS), dry_run=True)
    assert report.note == ""
    assert (filling.quarantined, filling.written) == ([], [])


def test_flows_of_one_table(monkeypatch, tmp_path: Path):
    """What replaces rows is one commit of all flows, compared with what the one that saw least of the table saw; what adds is one
    each, without those that run once.
    """
    flows = (flow("a", "orders"), flow("b", "orders"), flow("c", "orders", once=True))
    filling = Filling(monkeypatch, tmp_path, there=0)
    filling.seen = {"b": 4}
    assert len(filling.fill(plan_of(REPLACE, DAYS, flows=flows))) == 1
    assert filling.measured == [("x", 4)]
    assert json.loads(filling.written[0][0].user_metadata)["flow"] == "a, b, c"
    assert [report.flow for report in filling.fill(plan_of(flows=flows))] == ["a", "b"]


def test_what_writes_a_range(tmp_path: Path):
    """AUTO CDC and replacements by their own keys, else a merge by the given ones, else an append."""
    context = context_of(tmp_path, ORDERS)
    assert target_of(run_of(context)) == DeltaAppend(context.table_path(ORDERS))
    merge = target_of(run_of(context), keys=("id",))
    assert merge == DeltaMerge(context.table_path(ORDERS), ("id",))
    newer = Replacement(("id",), "at")
    own = target_of(run_of(context, one=flow(replacement=newer)))
    assert own == DeltaReplace(context.table_path(ORDERS), newer)


def test_a_replaced_range(monkeypatch, tmp_path: Path):
    """It is written down before its commit, which carries the condition and the range's identity, and then crossed out."""
    context = context_of(tmp_path, ORDERS)
    state = context.pipeline.project.state_folder
    rows, seen, at_write = RecordedFrame(), [], []
    write = table_backfill.write_batch

    def noting(*given: Any) -> None:
        at_write.extend(one.application for one in pending_replacements(state, "orders"))
        write(*given)

    def put_back(_: Any, __: Any, ___: Any, pending: PendingReplacement) -> None:
        seen.append(
            (pending, [one.application for one in pending_replacements(state, "orders")], len(rows.writes))
        )

    monkeypatch.setattr(table_backfill, "write_batch", noting)
    monkeypatch.setattr(table_backfill, "put_back_late_rows", put_back)
    plan = plan_of(REPLACE, DAYS, dataset=dataset(partition_columns=("day",)))
    part: Any = SimpleNamespace(accepted=rows)
    transaction = table_backfill._transaction(context, plan, "orders", arguments(DAYS))
    table_backfill._replace(context, plan, [part], transaction, {"query": 4})
    (written,) = rows.writes
    assert written.words == {"format": "delta", "mode": "overwrite"}
    assert written.options_given == {
        "replaceWhere": "x", "mergeSchema": "true", "txnAppId": transaction.application, "txnVersion": "0",
        "userMetadata": transaction.user_metadata,
    }  # fmt: skip
    assert (written.partitions, written.path) == ((), str(context.table_path(ORDERS)))
    (pending, noted, writes), = seen  # fmt: skip
    assert (at_write, noted, writes) == ([transaction.application], [transaction.application], 1)
    assert (pending.condition, pending.known) == ("x", {"query": 4})


class Late:
    """A table into which a stream (``q``) writes, and a replacement of a range that saw it at version 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.state, self.table = tmp_path / "state", tmp_path / "t"
        self.put: list[tuple[int, str, str]] = []
        test = self

        class Rows:
            def __init__(self, version: int) -> None:
                self.version = version

            def where(self, condition: str) -> Any:
                return SimpleNamespace(version=self.version, condition=condition)

        def write(target: DeltaAppend, rows: Any, transaction: Any) -> None:
            assert target.table == test.table
            test.put.append((rows.version, rows.condition, transaction.application))
            commit(test.table, transactions={transaction.application: transaction.batch_id})

        monkeypatch.setattr(late_rows, "rows_of_commit", lambda _, __, version: Rows(version))
        monkeypatch.setattr(DeltaAppend, "write", write)

    def pending(self, known: dict[str, int]) -> PendingReplacement:
        one = PendingReplacement("orders", "p.orders@backfill-x", "c", "{}", known)
        with one.written_down(self.state):
            return one


def test_rows_that_came_while_a_range_was_replaced(monkeypatch, tmp_path: Path):
    """Commits of the stream behind the version that the backfill saw, up to the one that Delta's transaction began from, are
    put back, each under an id of its own; others are not: earlier ones were seen, later ones stay, those of others are none.
    """
    late = Late(monkeypatch, tmp_path)
    commit(late.table, transactions={"q": 0})
    commit(late.table, transactions={"q": 1})  # seen
    commit(late.table, transactions={"q": 2})  # in between
    commit(late.table, transactions={"someone": 3})
    commit(late.table, transactions={"q": 3})  # in between
    commit(late.table, transactions={"q": 4})  # after the transaction had begun
    commit(late.table, transactions={"p.orders@backfill-x": 0}, readVersion=4)
    commit(late.table, transactions={"q": 5})
    pending = late.pending({"q": 1})
    put_back_late_rows(None, late.state, late.table, pending)  # type: ignore[arg-type]
    name = "p.orders@backfill-x-late-"
    assert late.put == [(2, "c", f"{name}2"), (4, "c", f"{name}4")]
    assert list(pending_replacements(late.state, "orders")) == []
    put_back_late_rows(None, late.state, late.table, pending)  # type: ignore[arg-type]
    assert len(late.put) == 2


def test_without_a_read_version(monkeypatch, tmp_path: Path):
    """The transaction began from the version before it at the latest."""
    late = Late(monkeypatch, tmp_path)
    commit(late.table)
    commit(late.table, transactions={"q": 1})
    commit(late.table, transactions={"p.orders@backfill-x": 0})
    put_back_late_rows(None, late.state, late.table, late.pending({"q": 0}))  # type: ignore[arg-type]
    assert [version for version, _, _ in late.put] == [1]


def test_each_stream_has_its_own_version(monkeypatch, tmp_path: Path):
    """Of two streams that were seen at other versions each is put back from its own on."""
    late = Late(monkeypatch, tmp_path)
    for batch in range(3):
        commit(late.table, transactions={"q": batch})
        commit(late.table, transactions={"r": batch})
    commit(late.table, transactions={"p.orders@backfill-x": 0}, readVersion=5)
    put_back_late_rows(None, late.state, late.table, late.pending({"q": 0, "r": 3}))  # type: ignore[arg-type]
    assert [version for version, _, _ in late.put] == [2, 4, 5]


@pytest.mark.parametrize("committed", [True, False])
def test_what_a_killed_backfill_left(monkeypatch, tmp_path: Path, committed: bool):
    """Committed, its late rows are put back; not committed, and abandoned, it is forgotten."""
    late = Late(monkeypatch, tmp_path)
    commit(late.table)
    commit(late.table, transactions={"q": 1})
    if committed:
        commit(late.table, transactions={"p.orders@backfill-x": 0})
    late.pending({"q": 0})
    finish_replacements(None, late.state, "orders", late.table)  # type: ignore[arg-type]
    assert [version for version, _, _ in late.put] == ([1] if committed else [])
    assert list(pending_replacements(late.state, "orders")) == []


def test_a_backfill_that_still_runs_is_left_alone(monkeypatch, tmp_path: Path):
    """Its replacement is its own to end, or to give up."""
    late = Late(monkeypatch, tmp_path)
    commit(late.table)
    pending = PendingReplacement("orders", "a", "c", "{}", {})
    with pending.written_down(late.state):
        finish_replacements(None, late.state, "orders", late.table)  # type: ignore[arg-type]
        assert len(list(pending_replacements(late.state, "orders"))) == 1


def test_which_errors_are_conflicts():
    """Those in which Delta says that another writer came between."""
    assert conflicts(RuntimeError("[DELTA_CONCURRENT_APPEND] Files were added."))
    assert not conflicts(RuntimeError("[DELTA_METADATA_MISMATCH] no"))


@pytest.mark.parametrize("condition", ["x", None])
def test_rows_of_a_range(monkeypatch, tmp_path: Path, condition):
    """Of the definition's rows those of the range are judged, and all where the range is one of the source; the session reads as
    before afterwards.
    """
    frame = SimpleNamespace(where=lambda text: f"rows where {text}")
    session = SimpleNamespace(substitutes=None)
    again: dict[str, Any] = {}
    evaluation = SimpleNamespace(session=session, cloud=SimpleNamespace(again=again))
    pipeline = SimpleNamespace(evaluation=evaluation, project=SimpleNamespace(state_folder=tmp_path))
    seen: list[Any] = []

    def rows(*, whole: bool) -> Any:
        seen.append((whole, session.substitutes is not None, list(again)))
        return frame

    @contextmanager
    def judged(marked: Any, *_: Any) -> Any:
        yield marked, "quality"

    for name in ("with_source", "in_own_session"):
        monkeypatch.setattr(range_rows, name, lambda given: given)
    monkeypatch.setattr(range_rows, "mark_rows", lambda given, rules: given)
    monkeypatch.setattr(range_rows, "judged_batch", judged)
    run: Any = SimpleNamespace(
        context=SimpleNamespace(pipeline=pipeline), dataset=ORDERS, name="orders", table=tmp_path, rows=rows,
        settings=nullcontext,
    )  # fmt: skip
    with range_rows.judged_rows(run, (), condition) as (marked, quality, size):
        assert (marked, quality, size) == ("rows where x" if condition else frame, "quality", None)
    assert seen == [(True, True, ["orders"])]
    assert (session.substitutes, again) == (None, {})


@pytest.mark.parametrize(
    ("chosen", "plan", "checked"),
    [(DAYS, {}, None), (VERSIONS, {}, True), (VERSIONS, {"mode": MERGE}, False),
     (VERSIONS, {"flows": (flow(replacement=Replacement(("id",), "at")),)}, None)],
)  # fmt: skip
def test_limits_of_a_stream(monkeypatch, tmp_path: Path, chosen, plan, checked):
    """A range of the table reads what the live stream has read; one of the source is compared with that, unless the flow's
    own sequence makes rows that come twice harmless.
    """
    context = context_of(tmp_path, ORDERS)
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)  # type: ignore[misc]
    seen: list[bool] = []
    monkeypatch.setattr(range_rows, "flow_start", lambda *_: None)
    monkeypatch.setattr(range_rows, "live_position", lambda _: "position")
    monkeypatch.setattr(range_rows, "read_so_far", lambda position, flow: (position, flow))
    monkeypatch.setattr(range_rows, "chosen_part", lambda chosen, _: (chosen,))
    monkeypatch.setattr(range_rows, "check_overlap", lambda *_, appends: seen.append(appends))
    limits = range_rows._limits(run_of(context), plan_of(chosen=chosen, **plan))
    assert limits == ((("position", "orders") if chosen is DAYS else (VERSIONS,)), "position")
    assert seen == ([] if checked is None else [checked])


def test_limits_of_what_is_no_stream(monkeypatch, tmp_path: Path):
    """A batch reads its sources whole; before the first update there is nothing to fill."""
    context = context_of(tmp_path, ORDERS)
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=False),)  # type: ignore[misc]
    monkeypatch.setattr(range_rows, "flow_start", lambda *_: None)
    with pytest.raises(RangeNotReadYet):
        range_rows._limits(run_of(context), plan_of())
    commit(context.table_path(ORDERS))
    assert range_rows._limits(run_of(context), plan_of()) == ((), None)
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)  # type: ignore[misc]
    assert range_rows._limits(run_of(context, one=flow(once=True)), plan_of()) == ((), None)


def test_no_batch_of_a_stream_takes_a_backfills_rows_for_its_own():
    """The epoch that they are held under is none of a flow's."""
    assert BACKFILL_EPOCH < 0


def test_flows_without_a_position(monkeypatch, tmp_path: Path):
    """The rows there are counted as of what the others have seen; where none has a position, as they are now."""
    for flows, version in (((flow(once=True),), None), ((flow(once=True), flow("live", "orders")), 9)):
        filling = Filling(monkeypatch, tmp_path, there=0)
        (report,) = filling.fill(plan_of(REPLACE, DAYS, flows=flows))
        assert (filling.measured, report.output_bytes) == ([("x", version)], 0)
