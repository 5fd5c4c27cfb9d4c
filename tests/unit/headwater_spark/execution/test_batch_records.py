"""The record of each batch, also of one whose driver died before it recorded it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, plan_batch, run_of, sink
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.layout import FlowState
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater.errors import RowsNotConserved
from headwater.event_log.folder_listing import FolderListing
from headwater_spark.execution import batch_records, folder_listings
from headwater_spark.execution.batch_counts import RECOMPUTED, UNKNOWN, BatchCounts, Recount
from headwater_spark.execution.batch_records import BatchRecords
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.rules.expectations import Quality, RuleCounts, view_observation

ORDERS = dataset()
ID = "11111111-2222-3333-4444-555555555555"


class Recording:
    """The records of a flow's batches: epoch 2, whose batches up to 5 a driver before this one had committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **more: Any) -> None:
        rules = (Expectation("r", "id > 0", ViolationAction.DROP),)
        self.table = more.get("table", dataset(expectations=rules))
        context: Any = context_of(tmp_path, self.table, recorded=more.get("recorded", {("orders", 2): 3}))
        self.folder = context.checkpoint(self.table.name, "orders").epoch_folder(2)
        for batch in range(6):
            plan_batch(self.folder, batch, {"n": batch}, done=True)
        self.path = context.table_path(self.table)
        commit(self.path)
        monkeypatch.setattr(batch_records, "ExecutorTime", lambda _: None)
        run = run_of(context, self.table, flow(target=self.table.name))
        self.outcome = run.outcome
        state = FlowState(epoch=2, first_batch=more.get("first_batch", 0))
        self.records = BatchRecords(run, state)
        self.context = context

    def start(self) -> None:
        self.records.started(SimpleNamespace(applications=("q",), judged=None), {})  # type: ignore[arg-type]

    @property
    def recorded(self) -> list[tuple[int, int, Any]]:
        emitted = [more for kind, _, more in self.context.events.emitted if kind == "flow_progress"]
        progress = [(more["batch_id"], more["details"]["flow_progress"]) for more in emitted]
        return [
            (batch, entry["metrics"]["num_output_rows"], entry["end_offsets"]) for batch, entry in progress
        ]


def test_batches_whose_driver_died_before_it_told_them(monkeypatch, tmp_path: Path):
    """Those behind the last recorded one are recorded with the rows that the table's log has, and are none of this run's."""
    recording = Recording(monkeypatch, tmp_path)
    commit(recording.path, transactions={"q": 4}, metrics={"numOutputRows": "7"})
    recording.start()
    assert recording.recorded == [(4, 7, ['{"n": 4}']), (5, 0, ['{"n": 5}'])]


def test_each_batch_has_its_line_in_the_log(monkeypatch, tmp_path: Path):
    """At DEBUG, with the flow and the number of the batch, and the numbers that its record has."""
    recording = Recording(monkeypatch, tmp_path)
    said: list[tuple[str, dict[str, Any]]] = []
    recording.context.say = lambda line, **about: said.append((line, about))
    recording.start()
    assert [about for _, about in said] == [
        {"flow": "orders", "batch": batch, "level": logging.DEBUG} for batch in (4, 5)
    ]
    assert said[0][0].startswith("BATCH      Batch 4 of orders: 0 rows written")
    assert recording.outcome.batches == 0


@pytest.mark.parametrize(("first", "batches"), [(0, [0, 1, 2, 3, 4, 5]), (4, [4, 5])])
def test_an_epoch_of_which_nothing_is_recorded(monkeypatch, tmp_path: Path, first: int, batches: list[int]):
    """All its batches, but those that a repair laid down and that wrote nothing."""
    recording = Recording(monkeypatch, tmp_path, recorded={}, first_batch=first)
    recording.start()
    assert [batch for batch, _, _ in recording.recorded] == batches


def test_batches_of_this_run(monkeypatch, tmp_path: Path):
    """Those that the listener never reported are recorded in the end, once, and counted."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    recording.start()
    plan_batch(recording.folder, 6, {"n": 6}, done=True)
    commit(recording.path, transactions={"q": 6}, metrics={"numOutputRows": "2"})
    recording.records.record_missed()
    recording.records.record_missed()
    assert recording.recorded == [(6, 2, ['{"n": 6}'])]
    assert (recording.outcome.batches, recording.outcome.output_rows) == (1, 2)


@pytest.mark.parametrize("source", ["FileStreamSource[file:/landing]", "KafkaV2[Subscribe[t]]"])
def test_how_long_folders_were_listed(monkeypatch, tmp_path: Path, source: str):
    """An update that reads files says so in its end, once, with the time of all batches; one that reads something else does not."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    monkeypatch.setattr(recording.records, "_executors", SimpleNamespace(take=lambda _: 1))
    recording.start()
    body = {"sources": [{"description": source, "numInputRows": 1}], "durationMs": {"latestOffset": 40}}
    for batch in (6, 7):
        plan_batch(recording.folder, batch, {"n": batch}, done=True)
        recording.records.on_progress(SimpleNamespace(
            batchId=batch, observedMetrics={}, json=json.dumps(body), sources=(), runId="r", numInputRows=1,
        ))  # fmt: skip
    recording.records.record_missed()
    told = [more for kind, _, more in recording.context.events.emitted if kind == "operation_progress"]
    found = [more["details"]["operation_progress"] for more in told]
    assert [(one["type"], one["status"], one["duration_ms"]) for one in found] == (
        [("AUTO_LOADER_LISTING", "COMPLETED", 80)] if source.startswith("File") else []
    )


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("last", "interval", "kind"),
    [
        (None, None, "AUTO_LOADER_LISTING"),
        (None, timedelta(hours=6), "AUTO_LOADER_BACKFILL"),
        (NOW - timedelta(hours=7), timedelta(hours=6), "AUTO_LOADER_BACKFILL"),
        (NOW - timedelta(hours=5), timedelta(hours=6), "AUTO_LOADER_LISTING"),
    ],
)
def test_how_many_files_a_folder_has(monkeypatch, tmp_path: Path, last: Any, interval: Any, kind: str):
    """Each read's listing is recorded with its folder, without a login, and counts as a backfill once per interval."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    listings = [FolderListing("s3://me:secret@b/in", 12, 30, interval), FolderListing("/other", 0, 5)]
    recording.context.pipeline.evaluation.cloud = SimpleNamespace(take_listings=lambda _: listings)
    before = (
        [] if last is None else [{"timestamp": last, "details": listings[0].details("AUTO_LOADER_BACKFILL")}]
    )
    monkeypatch.setattr(folder_listings, "events", lambda *_, **__: before)
    recording.start()
    recording.records.record_missed()
    idle = [more for event, _, more in recording.context.events.emitted if event == "operation_progress"]
    assert len(idle) == (kind == "AUTO_LOADER_BACKFILL"), "a run without a batch tells of a backfill alone"
    recording.context.events.emitted.clear()
    recording.records._listing_ms = 0
    recording.records.record_missed()
    told = [more for event, _, more in recording.context.events.emitted if event == "operation_progress"]
    bodies = [more["details"]["operation_progress"] for more in told]
    assert [(one["type"], one["duration_ms"], one["auto_loader_details"]["num_files_listed"]) for one in bodies] == [
        (kind, 30, 12), ("AUTO_LOADER_LISTING", 5, 0),
    ]  # fmt: skip
    assert "secret" not in str(told)
    assert bodies[1]["auto_loader_details"]["source_path"] == "/other"


@pytest.mark.parametrize(("dropped", "told"), [((3, 4), 7), ((0, 0), None), ((), None)])
def test_rows_that_came_too_late(monkeypatch, tmp_path: Path, dropped: tuple[int, ...], told: int | None):
    """Rows that the watermark left out, of all operators of the query, are among the measures of a batch, where there are any."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    monkeypatch.setattr(recording.records, "_executors", SimpleNamespace(take=lambda _: 1))
    recording.start()
    plan_batch(recording.folder, 6, {"n": 6}, done=True)
    body = {"stateOperators": [{"numRowsDroppedByWatermark": rows} for rows in dropped]}
    recording.records.on_progress(SimpleNamespace(
        batchId=6, observedMetrics={}, json=json.dumps(body), sources=(), runId="r", numInputRows=9,
    ))  # fmt: skip
    (batch,) = (more for kind, _, more in recording.context.events.emitted if kind == "flow_progress")
    assert batch["details"]["flow_progress"]["metrics"].get("num_rows_dropped_by_watermark") == told


@pytest.mark.parametrize(
    ("written", "quality", "kept"),
    [
        (3, Quality(5, 1, (), 1), True),
        (2, Quality(5, 1, (), 1), False),
        (4, Quality(5, 1, (), 1), False),
        (None, Quality(5, 1, (), 1), False),
        (None, Quality(1, 1, ()), True),
        (9, None, True),
    ],
)
def test_rows_are_conserved(monkeypatch, tmp_path: Path, written, quality, kept):
    """What a batch wrote is what came, less what its rules kept out; else the flow fails. Without counts nothing is said."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    recording.start()
    if written is not None:
        commit(recording.path, transactions={"q": 6}, metrics={"numOutputRows": str(written)})
    recording.records._record(6, 5, quality, None, {})
    if kept:
        recording.records.check_conservation()
        return
    with pytest.raises(RowsNotConserved):
        recording.records.check_conservation()


def test_a_batch_that_came_again(monkeypatch, tmp_path: Path):
    """Nothing is observed of it: what it came to is with the table's commit."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    recording.start()
    metadata = {"quality": {"rows": 5, "dropped": 1, "quarantined": 1, "failed": {"r": 2}, "files": 0}}
    commit(recording.path, transactions={"q": 6}, metrics={"numOutputRows": "3"}, metadata=metadata)
    recording.records._record(6, 0, Quality(0, 0, (RuleCounts("r", 0, 0),)), None, {})
    recording.records.check_conservation()
    assert (recording.outcome.dropped_rows, recording.outcome.quarantined_rows) == (1, 1)
    assert (recording.outcome.output_rows, recording.outcome.input_rows) == (3, 0)


def test_a_query_that_waits_is_stopped_when_its_batches_are_recorded(monkeypatch, tmp_path: Path):
    """Batches of earlier runs count as recorded; one of this run when it has its record."""
    recording = Recording(monkeypatch, tmp_path, recorded={("orders", 2): 5})
    recording.start()
    assert recording.records.all_recorded
    plan_batch(recording.folder, 6, {"n": 6}, done=True)
    assert not recording.records.all_recorded
    recording.records.record_missed()
    assert recording.records.all_recorded


@pytest.mark.parametrize(
    ("table", "mode"),
    [(ORDERS, OutputKind.UPDATE), (sink(SinkKind.FUNCTION, "", function=print), OutputKind.APPEND)],
)
def test_rows_that_can_not_be_counted_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Any, mode: OutputKind
):
    """Of rows that give way to others, and of a sink, the log does not say how many were written: nothing is missed."""
    monkeypatch.setattr(batch_records, "ExecutorTime", lambda _: None)
    modes = {"orders": OutputMode(mode)}
    run = run_of(context_of(tmp_path, table, modes=modes), table, flow(target=table.name))
    records = BatchRecords(run, FlowState())
    records._check(6, None, Quality(5, 1, (), 1))
    records.check_conservation()


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        (BatchCounts(5, Quality(5, 2, ())), 3), (BatchCounts(5, None), 0), (BatchCounts(None, None, origin=UNKNOWN), None),
        (BatchCounts(5, Quality(5, 1, ()), origin=RECOMPUTED), 4),
    ],
)  # fmt: skip
def test_rows_of_a_sink_without_a_log(monkeypatch, tmp_path: Path, counts: BatchCounts, rows: int | None):
    """Those that it was given; where that is not known, no number stands there."""
    records = Recording(monkeypatch, tmp_path).records
    records._commits = None
    assert records._output_rows(None, counts) == rows


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (BatchCounts(5, Quality(5, 2, (), 1)), ", 2 dropped, 1 quarantined."), (BatchCounts(5, None), ", 0 dropped."),
        (BatchCounts(5, Quality(5, 0, (), 0, 3)), ", 0 dropped, 3 files that can't be read quarantined."),
        (BatchCounts(None, None, quality_known=False, origin=UNKNOWN, reason="gone"),
         "; what it read, and what its rules rejected, is not known: gone."),
        (BatchCounts(None, None, origin=UNKNOWN, reason="gone"), ", 0 dropped; what it read is not known: gone."),
    ],
)  # fmt: skip
def test_what_is_said_of_a_batch(counts: BatchCounts, said: str):
    """What its rules rejected, where that is known; what is not known is said with the reason."""
    assert batch_records._message(7, "orders", 3, counts) == f"Batch 7 of orders: 3 rows written{said}"


@pytest.mark.parametrize(("written", "origin", "views"), [(5, RECOMPUTED, [("v", 9)]), (7, UNKNOWN, [])])
def test_rules_of_views_of_a_batch_that_was_evaluated_again(
    monkeypatch, tmp_path: Path, written: int, origin: str, views: list[tuple[str, int]]
):
    """They count where the batch came out as it was written; where it did not, nothing that the second run saw is recorded."""
    recording = Recording(monkeypatch, tmp_path)
    commit(recording.path, transactions={"q": 4}, metrics={"numOutputRows": str(written)})
    rules = (Expectation("s", "id > 1", ViolationAction.WARN),)
    view = SimpleNamespace(name="v", expectations=rules)
    recording.context.pipeline.registry = SimpleNamespace(datasets=lambda: [view])
    counts = SimpleNamespace(asDict=lambda: {"rows": 9, "dropped": 0, "rule_0": 0})
    quality = Quality(6, 1, (RuleCounts("r", 5, 1),), 0)
    recount = Recount(9, quality, {view_observation("v"): counts})
    recording.records.started(SimpleNamespace(applications=("q",), judged=None), {4: recount})  # type: ignore[arg-type]
    progress = [
        more["details"]["flow_progress"]
        for kind, _, more in recording.context.events.emitted
        if kind == "flow_progress" and more["batch_id"] == 4
    ]
    (about,) = progress
    assert about["counts"]["origin"] == origin
    expectations = about["data_quality"]["expectations"]
    assert [(one["dataset"], one["passed_records"]) for one in expectations if one["dataset"] == "v"] == views
