"""Epochs: which one is free, which ids of the past must not commit any more, and how a reset that broke off goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from delta.exceptions import ConcurrentTransactionException
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_spark.update_parts import Events, context_of, dataset, flow, run_of, state_of
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_identity import FlowIdentity, as_text, names_file
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import LeaseLost
from headwater.graph.update_plan import RefreshStage, ResetStage, UpdatePlan
from headwater.quarantine import columns as c
from headwater_spark.delta_writes import retired_epochs
from headwater_spark.delta_writes.retired_epochs import LAST_BATCH, ids_before, retire, retire_unwritten
from headwater_spark.execution import resets
from headwater_spark.execution.resets import run_resets

ORDERS = dataset()
QUARANTINED = dataset(expectations=(Expectation("r", "id > 0", ViolationAction.QUARANTINE),))


def metadata(epoch: int, flow: str = "orders", pipeline: str = "p") -> dict[str, Any]:
    """The metadata of a flow's commit."""
    return {"pipeline": pipeline, "flow": flow, "epoch": epoch}


def test_an_epoch_that_was_never_used(tmp_path: Path):
    """It is above all that the checkpoint's folders, the state, the table's log and the event log know of this flow."""
    context = context_of(tmp_path, ORDERS, recorded={("orders", 6): 0, ("other", 60): 0})
    table = context.table_path(ORDERS)
    assert context_of(tmp_path, ORDERS).unused_epoch("orders", "orders") == 0
    commit(table, metadata=metadata(4))
    commit(table, metadata=metadata(40, flow="other"))
    commit(table, metadata=metadata(41, pipeline="q"))
    assert context_of(tmp_path, ORDERS).unused_epoch("orders", "orders") == 5
    assert context.unused_epoch("orders", "orders") == 7
    checkpoint = state_of(context, epoch=8)
    assert context.unused_epoch("orders", "orders") == 9
    checkpoint.epoch_folder(11).mkdir()
    assert context.unused_epoch("orders", "orders") == 12


def test_the_epochs_of_a_renamed_flow(tmp_path: Path):
    """A flow that commits under former names looks for its epochs under these."""
    context = context_of(tmp_path, ORDERS)
    file = names_file(context.pipeline.project.state_folder)
    file.parent.mkdir(parents=True)
    file.write_text(as_text({"orders/orders": FlowIdentity("old", "before")}))
    commit(context.table_path(ORDERS), metadata=metadata(2, "before", "old"))
    assert context.identity("orders", "orders").application(3) == "old.before@3"
    assert context.unused_epoch("orders", "orders") == 3


def test_what_a_renamed_flow_commits(tmp_path: Path):
    """Its batches, and the rows that it quarantines, are under the former names: a repeated batch is known by both."""
    context = context_of(tmp_path, QUARANTINED)
    file = names_file(context.pipeline.project.state_folder)
    file.parent.mkdir(parents=True)
    file.write_text(as_text({"orders/orders": FlowIdentity("old", "before")}))
    run = run_of(context, QUARANTINED, flow())
    transaction = run.transaction(3, 7, batch=7)
    assert (transaction.application, transaction.batch_id) == ("old.before@3", 7)
    assert json.loads(transaction.user_metadata) == {**metadata(3, "before", "old"), "batch": 7}
    quarantine = run.quarantine(3)
    assert quarantine is not None
    assert (quarantine.flow, quarantine.epoch, quarantine.path.name) == ("before", 3, "orders_quarantine")


@pytest.mark.parametrize(
    ("state", "reset", "entry", "epoch"),
    [
        ({"epoch": 3}, False, {}, 3),
        ({"epoch": 3, "pending_epoch": 5}, True, {}, 5),
        ({"epoch": 3, "pending_epoch": 5}, False, {}, 3),
        ({"epoch": 3}, True, {}, 4),
        (None, False, {}, 0),
        (None, True, {"once": True}, 0),
    ],
)
def test_the_next_epoch(tmp_path: Path, state, reset, entry, epoch):
    """The live one; with a reset the one that was begun, or an unused one."""
    context = context_of(tmp_path, ORDERS)
    if state is not None:
        state_of(context, **state)
    one: Any = SimpleNamespace(name="orders", target="orders", streaming=True, once=entry.get("once", False))
    assert context.next_epoch(one, reset=reset) == epoch


def test_a_first_start_beside_rows_of_its_own(tmp_path: Path):
    """A stream without a state takes an epoch that its table does not know; a flow that runs once keeps the first."""
    context = context_of(tmp_path, ORDERS)
    commit(context.table_path(ORDERS), metadata=metadata(0))
    stream: Any = SimpleNamespace(name="orders", target="orders", streaming=True, once=False)
    once: Any = SimpleNamespace(name="orders", target="orders", streaming=True, once=True)
    batch: Any = SimpleNamespace(name="orders", target="orders", streaming=False, once=False)
    assert [context.next_epoch(one, reset=False) for one in (stream, once, batch)] == [1, 0, 0]
    assert [context.next_epoch(one, reset=True) for one in (stream, once, batch)] == [1, 1, 1]


def test_a_damaged_state_has_no_next_epoch(tmp_path: Path):
    """The flow's own start says why; the number shown until then is the first."""
    context = context_of(tmp_path, ORDERS)
    state_of(context, epoch=4).state_file.write_text("{")
    one: Any = SimpleNamespace(name="orders", target="orders", streaming=True, once=False)
    assert context.next_epoch(one, reset=True) == 0


@given(st.sets(st.integers(0, 6)), st.sampled_from([None, *range(7)]), st.integers(0, 7))
def test_the_ids_of_all_other_epochs(folders, live, epoch):
    """Each epoch that has a folder, or is in the state, but the one to run: its own id, and its query's where known."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        checkpoint = FlowCheckpoint(Path(place) / "f")
        for number in folders:
            checkpoint.epoch_folder(number).mkdir(parents=True)
            (checkpoint.epoch_folder(number) / "metadata").write_text(json.dumps({"id": f"query {number}"}))
        if live is not None:
            # The folder may be lost; the state knows the query.
            checkpoint.state_file.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.state_file.write_text(
                json.dumps(FlowState(epoch=live, query_id=f"query {live}").as_dict())
            )
        others = (folders | ({live} if live is not None else set())) - {epoch}
        ids = ids_before(checkpoint, FlowIdentity("p", "f"), epoch)
        assert ids == {f"p.f@{n}" for n in others} | {f"query {n}" for n in others}


def test_a_query_that_can_not_be_told(tmp_path: Path):
    """A damaged metadata file hides one id, and stops nobody from retiring the others."""
    checkpoint = FlowCheckpoint(tmp_path / "f")
    checkpoint.epoch_folder(0).mkdir(parents=True)
    (checkpoint.epoch_folder(0) / "metadata").write_text("{")
    checkpoint.epoch_folder(1).mkdir()
    assert ids_before(checkpoint, FlowIdentity("p", "f"), 2) == {"p.f@0", "p.f@1"}


def test_ids_are_used_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each table that is there gets one commit with the ids that are not used up in it; without any there is none."""
    made: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(retired_epochs, "_commit", lambda _, table, ids: made.append((table, ids)))
    commit(tmp_path / "a", transactions={"used": LAST_BATCH, "live": 7})
    commit(tmp_path / "b", transactions={"used": LAST_BATCH, "live": LAST_BATCH, "new": LAST_BATCH})
    tables = (None, tmp_path / "a", tmp_path / "b", tmp_path / "none")
    retire(None, tables, {"used", "live", "new"})  # type: ignore[arg-type]
    assert made == [(tmp_path / "a", ["live", "new"])]


@pytest.mark.parametrize(
    ("seen", "retired", "commits"),
    [
        ([0], False, 0),  # a replay has one batch, of the number 0
        ([7], False, 0),
        ([LAST_BATCH], True, 0),
        ([-1, 0], False, 1),  # the replay's own commit came first
        ([-1, LAST_BATCH], True, 1),
    ],
)
def test_an_id_is_used_up_only_where_nothing_was_committed(
    monkeypatch: pytest.MonkeyPatch, seen: list[int], retired: bool, commits: int
):
    """Of a commit under the id and of its end, one stands: where the commit does, its rows are not written a second time."""
    answers, made = list(seen), []

    def commit_ids(_: object, __: object, ids: list[str]) -> None:
        made.append(ids)
        if answers[0] != LAST_BATCH:
            raise ConcurrentTransactionException("another one was first")

    started = SimpleNamespace(txnVersion=lambda _: answers.pop(0))
    monkeypatch.setattr(retired_epochs, "_transaction", lambda *_: started)
    monkeypatch.setattr(retired_epochs, "_commit_ids", commit_ids)
    assert retire_unwritten(None, Path("/t"), "replay") is retired  # type: ignore[arg-type]
    assert made == [["replay"]] * commits


def test_the_number_that_no_batch_has():
    """It is above every batch, and a double can tell it from its neighbours."""
    assert LAST_BATCH == 9_007_199_254_740_991
    assert float(LAST_BATCH) != float(LAST_BATCH - 1)


class Steps:
    """What a reset does, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: str = "") -> None:
        self.done: list[Any] = []
        self.fails_at = fails_at

        def step(name: str) -> Any:
            def take(*given: Any) -> None:
                self.done.append((name, given))
                if name == self.fails_at:
                    raise KeyboardInterrupt

            return take

        for name in ("retire", "empty_table", "_empty_quarantine"):
            monkeypatch.setattr(resets, name, step(name))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.done]


def plan_of(*stages: ResetStage, refreshes: tuple[str, ...] = ("orders",)) -> UpdatePlan:
    """A plan with these resets, and a refresh of each dataset with the flow of its name."""
    kind = DatasetKind.STREAMING_TABLE
    return UpdatePlan(tuple(stages), tuple(RefreshStage(name, kind, (name,)) for name in refreshes))


def reset_context(tmp_path: Path, *datasets: Any) -> Any:
    """A context whose tables have a schema."""
    context: Any = context_of(tmp_path, *(datasets or (ORDERS,)), flows=tuple(flow(d.name) for d in datasets))
    context.pipeline.evaluation.table_schema = lambda _: None
    return context


def test_a_reset_that_empties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ids of the past are used up before the rows go, in the table and its quarantine; then the flow has a new epoch."""
    context, steps = reset_context(tmp_path, QUARANTINED), Steps(monkeypatch)
    checkpoint = state_of(context, epoch=2, completed=True, sink_id="t", definition_hash="h")
    checkpoint.epoch_folder(2).mkdir()
    memory = context.change_memory("orders")
    memory.mkdir(parents=True)
    run_resets(context, plan_of(ResetStage("orders", ("orders",), True)))
    assert steps.names == ["retire", "empty_table", "_empty_quarantine"]
    _, tables, ids = steps.done[0][1]
    assert tables == (context.table_path(QUARANTINED), context.quarantine_path(QUARANTINED))
    assert ids == {"p.orders@2"}
    assert json.loads(steps.done[1][1][-1]) == {"pipeline": "p", "full_refresh": "orders", "update": "u1"}
    assert not memory.exists()
    state = checkpoint.read_state()
    assert (state.epoch, state.pending_epoch, state.completed, state.sink_id) == (3, None, False, None)


def test_whose_quarantine_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The table's own, also where no rule quarantines any longer; not a user's table that has its name."""
    context, deleted = context_of(tmp_path, ORDERS), list[Any]()
    monkeypatch.setattr(resets, "delete_rows", lambda _, *given: deleted.append(given))
    path = context.quarantine_path(QUARANTINED)
    assert path is not None
    for fields in (None, ["id"], c.MANAGED):
        if fields is not None:
            columns = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in fields]
            shutil.rmtree(path, ignore_errors=True)
            commit(path, schema={"type": "struct", "fields": columns})
        assert deleted == []
        resets._empty_quarantine(context, ORDERS, "m")
    assert deleted == [(path, "m")]


def test_a_reset_that_keeps_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The flow has a new epoch, and nothing is touched in the table."""
    context, steps = reset_context(tmp_path), Steps(monkeypatch)
    checkpoint = state_of(context, epoch=2, completed=True)
    run_resets(context, plan_of(ResetStage("orders", ("orders",), False)))
    assert steps.names == []
    assert checkpoint.read_state().epoch == 3


@pytest.mark.parametrize("step", ["retire", "empty_table", "_empty_quarantine"])
def test_a_reset_that_broke_off_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str):
    """A crash anywhere leaves the intent: the next update, though it was asked for none, ends it with the same epoch."""
    context = reset_context(tmp_path)
    checkpoint = state_of(context, epoch=2, completed=True)
    Steps(monkeypatch, step)
    with pytest.raises(KeyboardInterrupt):
        run_resets(context, plan_of(ResetStage("orders", ("orders",), True)))
    state = checkpoint.read_state()
    assert (state.epoch, state.pending_epoch, state.pending_empties_table, state.completed) == (
        2,
        3,
        True,
        False,
    )
    steps = Steps(monkeypatch)
    run_resets(context, plan_of())
    assert steps.names == ["retire", "empty_table", "_empty_quarantine"]
    assert (checkpoint.read_state().epoch, checkpoint.read_state().pending_epoch) == (3, None)
    again = Steps(monkeypatch)
    run_resets(context, plan_of())
    assert again.names == []


def test_a_reset_that_another_driver_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A driver that stood still in its reset does not put the flow that the other one has filled since back to its beginning."""
    context = reset_context(tmp_path)
    checkpoint = state_of(context, epoch=2, completed=True)
    Steps(monkeypatch)
    ended = FlowState(epoch=3, sink_id="filled", completed=True)
    monkeypatch.setattr(resets, "_empty_quarantine", lambda *_: checkpoint.write_state(ended))
    with pytest.raises(LeaseLost):
        run_resets(context, plan_of(ResetStage("orders", ("orders",), True)))
    assert checkpoint.read_state() == ended


def test_a_flows_reset_that_broke_off_stays_the_flows_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was to keep the rows keeps them when it is ended, and other flows of the table are left alone."""
    context, steps = reset_context(tmp_path), Steps(monkeypatch)
    web = state_of(context, flow="web", epoch=1, pending_epoch=4)
    app = state_of(context, flow="app", epoch=1, completed=True)
    stage = RefreshStage("orders", DatasetKind.STREAMING_TABLE, ("web", "app"))
    run_resets(context, UpdatePlan((), (stage,)))
    assert steps.names == []
    assert (web.read_state().epoch, app.read_state().epoch, app.read_state().completed) == (4, 1, True)


def test_an_emptied_table_starts_all_its_flows_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A reset that was to empty the table concerns all flows of it, also those whose intent was not yet written."""
    context, steps = reset_context(tmp_path), Steps(monkeypatch)
    declared = [flow("web", "orders"), flow("app", "orders")]
    context.pipeline.evaluation.flows_of = lambda _: declared
    state_of(context, flow="web", epoch=1, pending_epoch=4, pending_empties_table=True)
    app = state_of(context, flow="app", epoch=1, completed=True)
    stage = RefreshStage("orders", DatasetKind.STREAMING_TABLE, ("web", "app"))
    run_resets(context, UpdatePlan((), (stage,)))
    assert steps.names[1] == "empty_table"
    assert app.read_state().epoch == 2


def test_all_intents_come_before_the_first_table_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Readers are marked before what they read, and nothing goes before all are marked."""
    bronze, silver = dataset("bronze"), dataset("silver")
    context = reset_context(tmp_path, bronze, silver)
    seen: list[str] = []
    write = FlowCheckpoint.update_state

    def update(self: FlowCheckpoint, **changes: Any) -> Any:
        seen.append(f"intend {self.folder.name}")
        return write(self, **changes)

    monkeypatch.setattr(FlowCheckpoint, "update_state", update)
    Steps(monkeypatch)
    monkeypatch.setattr(resets, "empty_table", lambda _, dataset, *__: seen.append(f"empty {dataset.name}"))
    stages = [ResetStage(name, (name,), True) for name in ("bronze", "silver")]
    run_resets(context, plan_of(*stages, refreshes=("bronze", "silver")))
    assert seen == ["intend silver", "intend bronze", "empty bronze", "empty silver"]
    assert [more["dataset"] for _, _, more in context.events.emitted] == ["bronze", "silver"]


def test_a_damaged_state_does_not_stop_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A flow whose state can't be read has nothing pending here: its own start refuses it."""
    context = reset_context(tmp_path)
    state_of(context).state_file.write_text("{")
    Steps(monkeypatch)
    run_resets(context, plan_of())
    assert isinstance(context.events, Events)
    assert context.events.emitted == []


def test_without_the_right_to_write_nothing_is_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The lease is asked first: no intent is written without it."""
    context, steps = reset_context(tmp_path), Steps(monkeypatch)
    checkpoint = state_of(context, epoch=2)
    context.lease = SimpleNamespace(check=lambda: (_ for _ in ()).throw(TimeoutError))
    with pytest.raises(TimeoutError):
        run_resets(context, plan_of(ResetStage("orders", ("orders",), True)))
    assert (steps.names, checkpoint.read_state().pending_epoch) == ([], None)


def test_a_lease_that_is_lost_between_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is looked at before each table is emptied: emptying the first may take as long as another driver needs to take over."""
    other = dataset("returns")
    context, steps = reset_context(tmp_path, ORDERS, other), Steps(monkeypatch)
    for name in ("orders", "returns"):
        state_of(context, name, name, epoch=1)
    monkeypatch.setattr(type(context), "check_lease", lambda _: steps.done.append(("lease", ())))
    stages = (ResetStage("orders", ("orders",), True), ResetStage("returns", ("returns",), True))
    run_resets(context, plan_of(*stages, refreshes=("orders", "returns")))
    table = ["lease", "retire", "empty_table", "_empty_quarantine"]
    assert steps.names == ["lease", *table, *table]
