"""What is done before and after a query runs: past epochs end, and only what came to its end is called completed."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, plan_batch, run_of, state_of
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import REMEMBERED, FlowState
from headwater.errors import LeaseLost
from headwater.event_log.details import FlowStatus
from headwater_spark.execution import streaming_write
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.streaming_write import run_stream


@pytest.mark.parametrize(
    ("epoch", "retired"), [(0, []), (1, [{"p.orders@0"}]), (2, [{"p.orders@0", "p.orders@1"}])]
)
def test_past_epochs_are_ended_before_a_query_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int, retired: list[set[str]]
):
    """From the second epoch on: a driver of the one before may stand still behind its check of the lease."""
    context = context_of(tmp_path, dataset())
    checkpoint = state_of(context, epoch=epoch)
    for number in range(epoch + 1):
        checkpoint.epoch_folder(number).mkdir()
    ended: list[set[str]] = []
    monkeypatch.setattr(streaming_write, "retire", lambda _, __, ids: ended.append(set(ids)))
    monkeypatch.setattr(streaming_write, "fixed_settings", lambda *_: {})
    monkeypatch.setattr(type(context), "quarantine_path", lambda *_: None)
    state = streaming_write._opened(run_of(context), checkpoint.surviving_state())
    assert (state.epoch, state.completed, ended) == (epoch, False, retired)


@pytest.mark.parametrize("stopped", [False, True])
def test_what_was_stopped_is_not_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool):
    """The next update must not take a stream that was stopped on its way for one that has nothing new."""
    context = context_of(tmp_path, dataset(), stop_requested=threading.Event())
    saved: list[bool] = []
    cleaned: list[Any] = []

    def query(*_: Any) -> None:
        if stopped:
            context.stop_requested.set()

    for name, made in {
        "check_cores": lambda _: None,
        "take_over": lambda _: None,
        "check_flow": lambda *_: None,
        "_opened": lambda *_: FlowState(),
        "_run_query": query,
        "_save_position": lambda *_, completed: saved.append(completed),
        "clean_sources": cleaned.append,
    }.items():
        monkeypatch.setattr(streaming_write, name, made)
    run = run_of(context)
    run_stream(run)
    assert saved == [not stopped]
    assert run.outcome.status is (FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED)
    assert cleaned == ([] if stopped else [run])


def test_a_query_ends_with_its_lease(tmp_path: Path):
    """It is stopped, and the flow fails: it does not go on as if it had come to its end."""
    stopped: list[bool] = []

    def lost() -> None:
        raise LeaseLost("another one has it")

    context: Any = SimpleNamespace(check_lease=lost)
    query: Any = SimpleNamespace(stop=lambda: stopped.append(True))
    with pytest.raises(LeaseLost):
        streaming_write._stop_without_lease(context, query)
    assert stopped == [True]


@pytest.mark.parametrize("lease_is_lost", [True, False])
def test_which_error_a_broken_batch_gives(tmp_path: Path, lease_is_lost: bool):
    """That of the batch's writer, but that of the lease where the batch was broken off because the lease was lost."""
    broken = InterruptedError("sleep interrupted")

    def lost() -> None:
        raise LeaseLost("another one has it") if lease_is_lost else RuntimeError("the query failed")

    query: Any = SimpleNamespace(awaitTermination=lambda _: False, stop=lambda: None)
    started: Any = SimpleNamespace(query=query, writer=SimpleNamespace(error=broken))
    context: Any = SimpleNamespace(check_lease=lost)
    ended = threading.Event()
    ended.set()
    with pytest.raises(LeaseLost if lease_is_lost else InterruptedError):
        streaming_write._await(context, started, ended, tmp_path, lambda: None, lambda: True, lambda *_: None)


def test_no_position_is_saved_without_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is checked before the query starts and after it has ended: another driver may have written the flow's state meanwhile."""
    steps: list[str] = []

    def check() -> None:
        steps.append("lease")
        if len(steps) > 1:
            raise LeaseLost("gone")

    context = context_of(tmp_path, dataset(), lease=SimpleNamespace(token=1, check=check))
    for name in ("check_cores", "take_over", "check_flow"):
        monkeypatch.setattr(streaming_write, name, lambda *_: None)
    monkeypatch.setattr(streaming_write, "_opened", lambda *_: FlowState())
    monkeypatch.setattr(streaming_write, "_run_query", lambda *_: steps.append("query"))
    monkeypatch.setattr(streaming_write, "_save_position", lambda *_, **__: steps.append("saved"))
    with pytest.raises(LeaseLost):
        run_stream(run_of(context))
    assert steps == ["lease", "query", "lease"]


@pytest.mark.parametrize(
    ("role", "version", "remembered"),
    [
        (FlowRole.CHANGES, 3, 3),
        (FlowRole.CHANGES, 0, 0),
        (FlowRole.CHANGES, None, None),
        (FlowRole.STREAM, 3, None),
    ],
)
def test_what_is_remembered_beside_a_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: FlowRole,
    version: int | None,
    remembered: int | None,
):
    """Its version, the first one too; nothing of a flow that has no change events."""
    context = context_of(tmp_path, dataset())
    run = run_of(context)
    monkeypatch.setattr(type(run), "role", role)
    for _ in range(-1 if version is None else version + 1):
        commit(context.change_memory("orders") / REMEMBERED)
    assert streaming_write._remembered(run) == remembered


@pytest.mark.parametrize(
    ("looks", "stops", "commits_at", "stopped_after"),
    [
        (5, False, 2, 2),  # the time is up from the beginning: one batch is written all the same
        (5, False, None, None),
        (5, True, None, 1),
    ],
)
def test_when_a_query_is_stopped(
    tmp_path: Path, looks: int, stops: bool, commits_at: int | None, stopped_after: int | None
):
    """On request at once; because its time is up not before it has written a batch."""
    steps: list[str] = []

    def ended(_: float) -> bool:
        steps.append("look")
        if len(steps) == commits_at:
            plan_batch(tmp_path, 0, {}, done=True)
        return len(steps) > looks

    query: Any = SimpleNamespace(awaitTermination=ended, stop=lambda: steps.append("stop"))
    stop = SimpleNamespace(is_set=lambda: stops)
    context: Any = SimpleNamespace(time_is_up=True, stop_requested=stop, check_lease=lambda: None)
    started: Any = SimpleNamespace(query=query, writer=None)
    event = threading.Event()
    event.set()
    streaming_write._await(
        context, started, event, tmp_path, lambda: None, lambda: True, lambda *_: steps.append("finish")
    )
    assert steps == ["look"] * (looks + 1 if stopped_after is None else stopped_after) + ["stop"] * (
        stopped_after is not None
    )


@pytest.mark.parametrize(
    ("before", "now", "after"), [(None, "t1", "t1"), ("t1", "t2", "t1"), (None, None, None)]
)
def test_a_destination_is_saved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, now: str | None, after: str | None
):
    """A table that was made anew while the query ran is another one than its flow wrote to: the next start has to see that."""
    context = context_of(tmp_path, dataset())
    checkpoint = state_of(context, sink_id=before)
    monkeypatch.setattr(FlowRun, "destination_id", lambda _: now)
    run = run_of(context)
    assert streaming_write._save_destination(run) is (after is not None)
    saved = checkpoint.read_state()
    assert (saved.sink_id, saved.table) == (after, str(run.table) if before is None and now else None)


@pytest.mark.parametrize(
    ("settings", "one_pass"), [({}, True), ({"spark.sql.shuffle.partitions": "2"}, False)]
)
def test_which_rows_are_judged_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], one_pass: bool
):
    """Those of flows without state alone: with state a batch must not be evaluated twice, as it is where the pass was too much."""
    context = context_of(tmp_path, dataset())
    state_of(context)
    asked: list[bool] = []
    columns = SimpleNamespace(columns={streaming_write.OUTPUT: None}, to_remember=lambda _: {})
    monkeypatch.setattr(FlowRun, "rows", lambda _: SimpleNamespace(schema=None))
    monkeypatch.setattr(streaming_write, "stream_schemas", lambda *_: columns)
    for name in ("check_source_schemas", "check_column_types"):
        monkeypatch.setattr(streaming_write, name, lambda *_: None)
    monkeypatch.setattr(streaming_write, "_checked", lambda *_, one_pass, **__: asked.append(one_pass))
    streaming_write._prepared(run_of(context), FlowState(state_settings=settings), ())
    assert asked == [one_pass]


@pytest.mark.parametrize(
    ("state", "batches", "kept"),
    [
        ({"state_settings": {"n": "2"}}, [0, 1], {"encoding": "1"}),
        ({"state_settings": {"n": "2"}}, [], {}),
        ({}, [0], {}),
        ({"state_settings": {"n": "2"}, "batch_settings": {"encoding": "0"}}, [0], {"encoding": "0"}),
    ],
)
def test_settings_of_batches_are_kept(
    tmp_path: Path, state: dict[str, Any], batches: list[int], kept: dict[str, str]
):
    """Of a flow that keeps state, once it has planned a batch; they stay the same as long as the epoch."""
    for batch in batches:
        file = tmp_path / "offsets" / str(batch)
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'v1\n{{"conf": {{"encoding": "{batch}"}}}}\n-')
    assert streaming_write._batch_settings(tmp_path, FlowState(**state)) == kept


@pytest.mark.parametrize(
    ("is_table", "there", "created"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_table_that_got_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_table: bool, there: bool, created: bool
):
    """It is created when the query has ended, since others read it; a sink is none."""
    steps: list[str] = []
    context: Any = context_of(tmp_path, dataset())
    context.listener.expect = lambda *_: threading.Event()
    context.pipeline.evaluation.table_schema = lambda _: None
    records = SimpleNamespace(
        on_progress=None, unrecorded=(), started=lambda *_: None,
        record_missed=lambda: steps.append("records"), check_conservation=lambda: steps.append("checked"),
    )  # fmt: skip
    for name, made in {
        "BatchRecords": lambda *_: records, "_prepared": lambda *_: None, "recount_batches": lambda *_: {},
        "start_stream": lambda *_: SimpleNamespace(query=None), "runs_in_real_time": lambda _: False,
        "KeptStream": lambda *_: SimpleNamespace(is_idle=None), "_await": lambda *_: steps.append("ended"),
        "table_exists": lambda _: there, "create_table": lambda *_: steps.append("created"),
    }.items():  # fmt: skip
        monkeypatch.setattr(streaming_write, name, made)
    monkeypatch.setattr(FlowRun, "settings", lambda *_: nullcontext())
    monkeypatch.setattr(FlowRun, "delta_table", property(lambda _: tmp_path if is_table else None))
    start: Any = None
    streaming_write._run_query(run_of(context), start, FlowState(), ())
    assert steps == ["ended", *["created"] * created, "records", "checked"]


@pytest.mark.parametrize(
    ("seconds", "happens", "ended"),
    [
        (None, {3: "planned"}, 3),
        (None, {3: "stopped"}, 3),
        (None, {3: "done", 5: "planned"}, 5),
        # Its progress never comes, and nothing is planned after it.
        (None, {3: "done"}, 44),
        (1.0, {}, 20),
        (1.0, {3: "planned"}, 3),
    ],
)
def test_how_long_a_batch_in_flight_is_waited_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float | None,
    happens: dict[int, str],
    ended: int,
):
    """Until it is done and reported, which the next plan or the query's end shows, or a moment after its mark; or as long as is given."""
    plan_batch(tmp_path, 7, {})
    looks = [0]
    query: Any = SimpleNamespace(isActive=True)

    def sleep(_: float) -> None:
        looks[0] += 1
        assert looks[0] < 100
        match happens.get(looks[0]):
            case "planned":
                plan_batch(tmp_path, 8, {})
            case "done":
                plan_batch(tmp_path, 7, {}, done=True)
            case "stopped":
                query.isActive = False

    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: 100 + looks[0] * streaming_write._LOOK_SECONDS)
    monkeypatch.setattr(streaming_write, "time", clock)
    streaming_write.wait_for_batch(query, tmp_path, seconds)
    assert looks[0] == ended
