"""When a view is recomputed, and how much of it."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from delta.exceptions import DeltaConcurrentModificationException
from pyspark.sql.types import StructType
from tests.unit.headwater_spark.recorded_writes import RecordedFrame
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, state_of
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.flow import Flow
from headwater.errors import RefusedForSafety
from headwater.graph.manifest import FlowEntry
from headwater.incremental.costs import Reach
from headwater.incremental.refresh_record import ViewLog
from headwater.incremental.techniques import Planned, Technique
from headwater_spark.execution import flow_writer
from headwater_spark.execution import view_refresh as full_refresh
from headwater_spark.rules.expectations import Quality

ORDERS = dataset()
ID = "11111111-2222-3333-4444-555555555555"


def view(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, now: Any = "1", force: bool = False, one: Flow | None = None,
    time_dependent: bool = False, rows_read: bool = False, schema: Any = None, quality: Quality | None = None,
    made_ready: list[Any] | None = None, **state: Any,
) -> tuple[list[Any], Any]:  # fmt: skip
    """What a refresh of a view writes, and which technique it says it took."""
    made_ready = [] if made_ready is None else made_ready
    table = dataset(kind=DatasetKind.MATERIALIZED_VIEW, schema=schema)
    context: Any = context_of(tmp_path, table)
    context.pipeline.manifest.flows = (
        FlowEntry(name="orders", target="orders", streaming=False, time_dependent=time_dependent),
    )
    context.pipeline.manifest.rows_read = rows_read
    rows = RecordedFrame()
    rows.schema = StructType([])  # type: ignore[attr-defined]
    evaluation = context.pipeline.evaluation
    evaluation.settings = lambda *_: nullcontext()
    evaluation.evaluate = lambda _, whole: rows
    path = context.table_path(table)
    if not path.exists():
        commit(path)
    state_of(
        context,
        **{
            "completed": True,
            "sink_id": ID,
            "definition_hash": "hash",
            "input_versions": {"t": "1"},
            **state,
        },
    )
    monkeypatch.setattr(full_refresh, "fingerprints", lambda *_: None if now is None else {"t": now})
    monkeypatch.setattr(flow_writer, "Observation", lambda: SimpleNamespace(get={"rows": 1, "dropped": 0}))
    monkeypatch.setattr(flow_writer, "apply_expectations", lambda frame, *_: frame)
    monkeypatch.setattr(full_refresh, "slice_condition", lambda *_: "day > 1")
    monkeypatch.setattr(full_refresh, "keep_clustering", lambda *_: None)
    # Roles are those of tests/unit/headwater/preflight/test_role_checks.py.
    monkeypatch.setattr(
        full_refresh, "make_replaceable", lambda _run, last, force: made_ready.append((last.epoch, force))
    )
    # Nothing is written here, so that the table's log names no refresh.
    monkeypatch.setattr(full_refresh, "view_log", lambda *_: ViewLog(update="u1"))
    full_refresh.refresh_view(run_of(context, table, one), force=force)
    techniques = [
        more["details"] for kind, _, more in context.events.emitted if kind == "planning_information"
    ]
    return rows.writes, json.dumps(techniques)


@pytest.mark.parametrize(
    ("force", "now", "made"), [(False, "2", [(4, False)]), (True, "1", [(4, True)]), (False, "1", [])]
)
def test_rows_that_may_be_replaced(monkeypatch, tmp_path: Path, force: bool, now: str, made: list[Any]):
    """Each refresh that writes makes sure that they are a view's, or may be taken away; one that finds no news does not look."""
    made_ready: list[Any] = []
    view(monkeypatch, tmp_path, force=force, now=now, made_ready=made_ready, epoch=4)
    assert made_ready == made


def test_a_view_whose_sources_have_not_moved(monkeypatch, tmp_path: Path):
    """It is left alone."""
    written, technique = view(monkeypatch, tmp_path)
    assert written == []
    assert "NO_OP" in technique


@pytest.mark.parametrize(
    "more",
    [{"now": "2"}, {"now": None}, {"force": True}, {"time_dependent": True}, {"rows_read": True}, {"completed": False}, {"sink_id": "another"},
     {"definition_hash": "another"}, {"input_versions": {}}, {"refresh": {"update": "another"}}],
)  # fmt: skip
def test_when_a_view_is_recomputed(monkeypatch, tmp_path: Path, more):
    """A source moved, or may have; the definition, the table, its rows or the last run is not what it was, or may not be; or it was asked for."""
    (written,), technique = view(monkeypatch, tmp_path, **more)
    metadata = {"pipeline": "p", "flow": "orders", "update": "u1"}
    assert written.words["mode"] == "overwrite"
    assert written.options_given == {
        "userMetadata": json.dumps(metadata),
        "txnAppId": "p.orders@refresh",
        "txnVersion": "1",
        "overwriteSchema": "true",
    }
    assert "COMPLETE_RECOMPUTE" in technique


def test_a_source_that_moves_on_from_an_old_version(monkeypatch, tmp_path: Path):
    """Delta reads a version that is older than files are kept only while it is the newest: then the new one is noted, once."""
    calls: list[str] = []

    def begun(*_: Any, **__: Any) -> Any:
        calls.append("begun")
        if len(calls) == 1:
            raise RuntimeError("[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION]")
        raise ValueError("another")

    monkeypatch.setattr(full_refresh._Refresh, "begun", begun)
    with pytest.raises(ValueError, match="another"):
        view(monkeypatch, tmp_path, now="2")
    assert calls == ["begun"] * 2


def test_a_part_of_a_view(monkeypatch, tmp_path: Path):
    """replace_where: that part alone; a full refresh takes all of it. A declared schema is never overwritten."""
    part = flow(replace_where="day > 1")
    (written,), technique = view(monkeypatch, tmp_path, now="2", one=part)
    assert (written.options_given["replaceWhere"], written.options_given["mergeSchema"]) == (
        "day > 1",
        "true",
    )
    assert "overwriteSchema" not in written.options_given
    assert "PARTITION_OVERWRITE" in technique
    (written,), technique = view(monkeypatch, tmp_path, force=True, one=part)
    assert "replaceWhere" not in written.options_given
    assert "COMPLETE_RECOMPUTE" in technique
    (written,), _ = view(monkeypatch, tmp_path, now="2", schema="id INT")
    assert "overwriteSchema" not in written.options_given


def test_what_a_state_keeps_of_a_refresh(tmp_path: Path):
    """How far changes reached, by the technique that followed them, beside what is known of others; a look that was not made changes nothing."""
    table = dataset(kind=DatasetKind.MATERIALIZED_VIEW)
    context: Any = context_of(tmp_path, table)
    known = {"reach": {"WINDOW_FUNCTION": [0.5, 0.1, 0], "ROW_BASED": [0.9, 0.9, 3]}, "follows": False}
    state_of(context, refresh=known)
    rows: Any = None
    run = run_of(context, table)
    refresh = full_refresh._Refresh(run, rows, None, {}, {}, whole=False, reason="why")
    assert refresh.stored() == {**known, "technique": "NO_OP", "reason": "why", "seen": None}
    refresh.reached = (Technique.ROW_BASED, Reach(0.25, 0.123456, 1))
    assert refresh.stored()["reach"] == {"WINDOW_FUNCTION": [0.5, 0.1, 0], "ROW_BASED": [0.25, 0.1235, 1]}
    assert refresh.stored()["follows"] is False
    refresh.done, refresh.seconds, refresh.predicted, refresh.planned = (
        Technique.ROW_BASED,
        2.344,
        1.5,
        "ROW_BASED",
    )
    assert refresh.stored()["follows"] is True
    assert refresh.stored()["runs"] == {"ROW_BASED": [[1.5, 2.34]]}


@pytest.mark.parametrize(
    ("error", "moved", "stopped", "passes"),
    [
        (ValueError("another Spark"), False, False, False),
        (ValueError("after its commit"), True, False, True),
        (ValueError("it was stopped"), False, True, True),
        (RefusedForSafety("no"), False, False, True),
        (DeltaConcurrentModificationException("another driver"), False, False, True),
    ],
)
def test_an_incremental_refresh_that_fails(
    monkeypatch, tmp_path: Path, error: Exception, moved: bool, stopped: bool, passes: bool
):
    """The view is recomputed instead; not where its commit is there, another driver was at it, or the update is to stop."""
    table = dataset(kind=DatasetKind.MATERIALIZED_VIEW)
    context: Any = context_of(tmp_path, table, stop_requested=threading.Event())
    versions = iter([1, 2 if moved else 1])
    monkeypatch.setattr(full_refresh, "head_version", lambda _: next(versions))
    if stopped:
        context.stop_requested.set()

    def increment(_: Technique) -> Any:
        raise error

    decision: Any = SimpleNamespace(
        planned=Planned(Technique.ROW_BASED), techniques=SimpleNamespace(increment=increment)
    )
    rows: Any = None
    refresh = full_refresh._Refresh(run_of(context, table), rows, None, {}, {}, whole=False)
    if passes:
        with pytest.raises(type(error)):
            refresh._increment(decision)
        return
    instead = refresh._increment(decision)
    assert instead is not None
    assert instead.chosen is Technique.COMPLETE_RECOMPUTE
    assert "another Spark" in instead.reason
