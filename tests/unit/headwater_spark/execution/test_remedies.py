"""What another start of a flow is made good with: how often and when it is tried again, and whose columns are read again."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from headwater.checkpoints.layout import FlowState
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.definitions.flow import Flow
from headwater.errors import (
    FlowFailed,
    FlowInterrupted,
    HeadwaterError,
    SchemaChanged,
    SourceSchemaChanged,
    UnknownFields,
)
from headwater_spark.execution import remedies
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.restarts import Start, run_with_restarts
from headwater_spark.quarantine.unreadable_files import UnreadableFile

ORDERS = Dataset("orders", DatasetName(None, "shop", "orders"), DatasetKind.STREAMING_TABLE)
FLOW = Flow("orders", "orders", lambda: None)


def run_of(*, retries="3", seconds=None, evolves=None, reads=()):
    """A run of a flow without Spark, its records, and its wish to stop."""
    records: list[dict] = []
    cloud = SimpleNamespace(
        reads_of=lambda _: reads, careful=set(), evolve=lambda *_: evolves.pop(0) if evolves else []
    )
    project = SimpleNamespace(
        configuration={"pipelines.maxFlowRetryAttempts": retries},
        spec=SimpleNamespace(spark={}),
        state_folder=None,
    )
    context = SimpleNamespace(
        ends=None if seconds is None else time.monotonic() + seconds,
        time_is_up=False,
        pipeline=SimpleNamespace(
            project=project, evaluation=SimpleNamespace(labels=frozenset(), cloud=cloud)
        ),
        flow_retries=0,
        continuous=None,
        stop_requested=threading.Event(),
        say=lambda _, flow: None,
        checkpoint=lambda *_: None,
        events=SimpleNamespace(emit=lambda *_, **more: records.append(more["details"]["operation_progress"])),
    )
    return FlowRun(context, ORDERS, FLOW, FlowOutcome("orders", "orders")), records  # type: ignore[arg-type]


def tries(monkeypatch, *ends: HeadwaterError | None, stop_at: int = 99, **options):
    """The waits between the tries of a flow that ends in this way; what it ends with."""
    run, records = run_of(**options)
    left, context = list(ends), run.context
    monkeypatch.setattr(remedies, "FIRST_WAIT_SECONDS", 0.01)

    def begin(_: Start) -> None:
        vars(context)["time_is_up"] = context.ends is not None and time.monotonic() >= context.ends
        if len(ends) - len(left) + 1 >= stop_at:
            context.stop_requested.set()
        if (error := left.pop(0)) is not None:
            raise error

    remedy = lambda failure, start: remedies.try_later(run, failure, start)  # noqa: E731
    failure = run_with_restarts(begin, (remedy,), context.stop_requested)
    assert [record["attempt"] for record in records] == list(range(1, len(records) + 1))
    return [record["seconds"] for record in records], failure


def test_later_each_time(monkeypatch):
    """What may pass is tried again, each time after twice as long, until it passes; the error is then no more."""
    assert tries(monkeypatch, FlowInterrupted("away"), FlowInterrupted("away"), None) == ([0.01, 0.02], None)


def test_not_for_ever(monkeypatch):
    """After the last try the error stays."""
    waits, failure = tries(monkeypatch, *[FlowInterrupted("away")] * 3, retries="2")
    assert (len(waits), type(failure)) == (2, FlowInterrupted)


def test_an_hour_at_most():
    """The waits of a flow with a thousand tries stop growing."""
    run, _ = run_of(retries="5000")
    following = remedies.try_later(run, FlowInterrupted("away"), Start(4000))
    assert following == Start(4001, remedies.LONGEST_WAIT_SECONDS)


@pytest.mark.parametrize(
    ("ends", "options"),
    [((FlowFailed("wrong"),), {}), ((FlowInterrupted("away"),), {"retries": "0"}), ((None,), {}),
     ((FlowInterrupted("away"),), {"stop_at": 1})],
)  # fmt: skip
def test_only_what_may_pass(monkeypatch, ends, options):
    """A wrong query, a flow without retries, one that is done and one that is to stop run once."""
    assert tries(monkeypatch, *ends, **options) == ([], ends[-1])


def test_not_beyond_the_end_of_a_long_update(monkeypatch):
    """The last wait is cut to the time that is left; after one more try the error stays."""
    waits, failure = tries(monkeypatch, *[FlowInterrupted("away")] * 9, retries="8", seconds=0.05)
    assert sum(waits) <= 0.05
    assert len(waits) < 8
    assert isinstance(failure, FlowInterrupted)


class MetadataChangedException(Exception):
    """As Delta words it."""


class SparkRuntimeException(Exception):
    """As Spark wraps it."""


TARGET = MetadataChangedException("[DELTA_METADATA_CHANGED] x")
SOURCE = SparkRuntimeException("[DELTA_SCHEMA_CHANGED] x")
FIELDS = SparkRuntimeException(
    "[USER_RAISED_EXCEPTION] HEADWATER_UNKNOWN_FIELDS:a, b in file:/x SQLSTATE: P0001"
)
LATE = SparkRuntimeException("[USER_RAISED_EXCEPTION] HEADWATER_LATE_FILE:/data/x.json")


def test_columns_are_read_again_once():
    """The columns of now make one more start good, in each try; files that are left out are looked for again."""
    for failure in (TARGET, SOURCE):
        run, _ = run_of()
        following = remedies.reload_columns(run, failure, Start(2, 5.0))
        assert following is not None
        assert (following.attempt, following.seconds, following.reloaded, following.left_out) == (
            2,
            0,
            True,
            (),
        )
        assert "starts again" in (following.reason or "")


@pytest.mark.parametrize(("failure", "error"), [(TARGET, SchemaChanged), (SOURCE, SourceSchemaChanged)])
def test_a_second_time_has_a_name(failure, error):
    """The second change in one try is an error that says which, and whether it passes."""
    run, _ = run_of()
    with pytest.raises(error) as raised:
        remedies.reload_columns(run, failure, Start(reloaded=True))
    assert raised.value.__cause__ is failure
    assert raised.value.transient == (error is SchemaChanged)


def test_new_fields():
    """They evolve the schema where it may take them; where it may not, they are named. A late file is looked at with care."""
    run, _ = run_of(reads=("files",), evolves=[["a and b were added"]])
    following = remedies.reload_columns(run, FIELDS, Start())
    assert following is not None
    assert following.reason == "orders starts again: a and b were added"
    with pytest.raises(UnknownFields, match=r"a, b in file:/x\n"):
        remedies.reload_columns(run, FIELDS, Start())
    assert remedies.reload_columns(run, LATE, Start()) is not None
    assert run.context.pipeline.evaluation.cloud.careful == {"orders"}


def test_other_failures_are_for_others():
    """A flow without files, and failures of another kind, are left to the remedies behind."""
    assert remedies.reload_columns(run_of()[0], FIELDS, Start()) is None
    assert remedies.reload_columns(run_of()[0], ValueError("[DELTA] x"), Start()) is None
    assert remedies.leave_files_out(run_of()[0], FIELDS, Start()) is None


def test_columns_are_read_again_after_each_batch():
    """A query may run for days: only a second change before anything was written is one too many."""
    run, _ = run_of()
    reload = remedies.ReloadColumns(run)
    assert reload(TARGET, Start()) is not None
    with pytest.raises(SchemaChanged):
        reload(TARGET, Start(reloaded=True))
    run.outcome.batches = 1
    assert reload(TARGET, Start(reloaded=True)) is not None
    with pytest.raises(SchemaChanged):
        reload(TARGET, Start(reloaded=True))
    assert reload(ValueError("other"), Start()) is None


def unreadable(*names: str) -> list[UnreadableFile]:
    return [UnreadableFile(f"/in/{name}", 0, 7, 0, None, "cut off") for name in names]


@pytest.mark.parametrize(
    ("found", "named"),
    [("a", "quarantine: a."), ("abc", "quarantine: a, b, c."), ("abcde", "quarantine: a, b, c and 2 more.")],
)
def test_files_are_left_out_beside_those_before(monkeypatch, found: str, named: str):
    """The next start leaves out both, at once, in the same attempt."""
    run, _ = run_of()
    known: list[object] = []
    monkeypatch.setattr(
        remedies, "_unreadable", lambda _run, _failure, before: known.append(before) or unreadable(*found)
    )
    before = tuple(unreadable("z"))
    following = remedies.leave_files_out(run, FIELDS, Start(2, 9.0, reloaded=True, left_out=before))
    assert following is not None
    assert known == [before]
    assert following.left_out == (*before, *unreadable(*found))
    assert (following.attempt, following.seconds, following.reloaded) == (2, 0.0, True)
    assert (following.reason or "").endswith(named)


CUT_OFF = SparkRuntimeException(
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.  SQLSTATE: KD001"
)


@pytest.mark.parametrize(
    ("failure", "action", "state", "looked"),
    [
        (CUT_OFF, ViolationAction.QUARANTINE, FlowState(epoch=3), True),
        (CUT_OFF, ViolationAction.DROP, FlowState(epoch=3), False),
        (CUT_OFF, ViolationAction.QUARANTINE, None, False),
        (FIELDS, ViolationAction.QUARANTINE, FlowState(epoch=3), False),
    ],
)
def test_when_files_are_looked_for(monkeypatch, failure, action, state, looked: bool):
    """Where one failed by itself and the table has a quarantine for it; the files of the live epoch are looked at."""
    run, _ = run_of()
    rules = (Expectation("r", "id > 0", action),)
    checkpoint = SimpleNamespace(read_state=lambda: state, epoch_folder=lambda epoch: f"epoch {epoch}")
    one = SimpleNamespace(
        dataset=SimpleNamespace(expectations=rules), checkpoint=checkpoint, flow=FLOW, context=run.context,
        settings=lambda _: nullcontext(),
    )  # fmt: skip
    one.context.pipeline.evaluation.evaluate = lambda _: "frame"
    monkeypatch.setattr(remedies, "find_unreadable", lambda frame, folder, _, known: [(frame, folder, known)])
    found = remedies._unreadable(one, failure, ("known",))  # type: ignore[arg-type]
    assert found == ([("frame", "epoch 3", ("known",))] if looked else [])
