"""A running query's progress as one event log record per batch, also for batches that a killed driver left unrecorded."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.offsets import last_committed_batch, read_offsets
from headwater.errors import CheckpointUnreadable, RowsNotConserved
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.stream_progress import (
    added_listing,
    progress_backlog,
    stream_metrics,
    stream_progress,
)
from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_metrics import engine_details
from headwater_spark.delta_writes.batch_commits import BatchCommit, BatchCommits, quality_details
from headwater_spark.execution.batch_counts import RECOMPUTED, UNKNOWN, BatchCounts, Recount, batch_counts
from headwater_spark.execution.executor_time import ExecutorTime
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import row_metrics
from headwater_spark.execution.folder_listings import record_listings
from headwater_spark.execution.recounting import OBSERVATION
from headwater_spark.execution.stream_start import StartedStream
from headwater_spark.rules.expectations import Quality, read_quality, view_observation

_NO_ROWS = Quality(0, 0, ())


class BatchRecords:
    """Turns a query's progress into one record per batch."""

    def __init__(self, run: FlowRun, state: FlowState) -> None:
        self._run, context = run, run.context
        self._epoch = state.epoch
        self._first_of_epoch = state.first_batch
        self._folder: Place = run.checkpoint.epoch_folder(state.epoch)
        self._last_recorded = context.recorded_batches.result().get((run.name, state.epoch))
        context.events.set_known_batches(run.name, state.epoch, self._last_recorded)
        self._recorded: set[int] = set()
        self._first = self._last_committed() + 1
        self._started = threading.Event()
        self._commits: BatchCommits | None = None
        self._executors = ExecutorTime(context.spark)
        self._listing_ms: int | None = None
        self._stream: StartedStream | None = None
        self._unaccounted: list[str] = []
        self._recounts: Mapping[int, Recount] = {}
        # A merge, or an aggregation that is rewritten, writes other numbers of rows than its batch has.
        self._appends = run.mode.kind.only_adds_rows and run.dataset.sink is None

    @property
    def unrecorded(self) -> list[int]:
        """The batches that are marked as done and have no record: their driver died before it wrote one."""
        return self._missing(self._first - 1)

    @property
    def all_recorded(self) -> bool:
        """Whether the newest batch of this run that is marked as done has its record."""
        last = self._last_committed()
        return last < self._first or last in self._recorded

    def started(self, stream: StartedStream, recounts: Mapping[int, Recount]) -> None:
        """The query runs, and the ids of its commits are known: record the batches of dead drivers.

        They come before this run's own: readers of the log assume that it has all batches up to the last. ``recounts``: the
        counts of batches of dead drivers.
        """
        self._recounts = recounts
        table = self._run.delta_table
        self._stream = stream
        self._commits = BatchCommits(table, *stream.applications) if table is not None else None
        self._record_missing(self._first - 1)
        self._started.set()

    def on_progress(self, progress: Any) -> None:
        """Record a batch; called by Spark's listener bus, in order."""
        batch_id = int(progress.batchId)
        # A trigger without new data reports the number of a batch that was never planned.
        if batch_id in self._recorded or not (self._folder / "commits" / str(batch_id)).exists():
            return
        self._recorded.add(batch_id)
        self._started.wait(60)
        observed = progress.observedMetrics.get(OBSERVATION)
        rules = self._run.dataset.expectations
        quality = read_quality(observed.asDict(), rules) if observed is not None else self._judged(batch_id)
        end_offsets = self._end_offsets(batch_id) or [str(source.endOffset) for source in progress.sources]
        body = json.loads(progress.json)
        measures: dict[str, Any] = {**stream_metrics(body), **progress_backlog(body)}
        operators = body.get("stateOperators") or ()
        late_rows = sum(int(operator.get("numRowsDroppedByWatermark") or 0) for operator in operators)
        measures["num_rows_dropped_by_watermark"] = late_rows or None
        measures["executor_time_ms"] = self._executors.take(str(progress.runId))
        self._listing_ms = added_listing(self._listing_ms, body)
        views = self._view_rules(progress.observedMetrics)
        self._record(batch_id, int(progress.numInputRows), quality, end_offsets, measures, views)
        self._run.emit(
            "stream_progress",
            f"Spark's progress of {self._run.name}, batch {batch_id}.",
            batch_id=batch_id,
            epoch=self._epoch,
            details=stream_progress(body),
            maturity="EVOLVING",
        )

    def _view_rules(self, observed: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The counts of the rules of temporary views, which are part of the query that reads them."""
        counted: list[dict[str, Any]] = []
        for view in self._run.context.pipeline.registry.datasets():
            counts = observed.get(view_observation(view.name)) if view.expectations else None
            if counts is not None:
                quality = read_quality(counts.asDict(), view.expectations)
                counted += quality_details(quality, view.name)["expectations"]
        return counted

    def _judged(self, batch_id: int) -> Quality | None:
        judged = self._stream.judged if self._stream is not None else None
        return judged.qualities.pop(batch_id, None) if judged is not None else None

    def check_conservation(self) -> None:
        """Raise RowsNotConserved where a batch of this run wrote more or fewer rows than its rules let through."""
        if self._unaccounted:
            raise RowsNotConserved(
                f"Flow '{self._run.name}': rows are not accounted for. {' '.join(self._unaccounted)}",
                where=self._run.flow.location,
                remedy="The table has what was written. Compare it with its source, refill it with --full-refresh, and "
                "report this: it should not happen.",
            )

    def _check(self, batch_id: int, commit: BatchCommit | None, quality: Quality | None) -> None:
        if quality is None or not self._appends or (commit is not None and not commit.counted):
            return
        written = commit.rows if commit else 0
        if written != quality.accepted:
            self._unaccounted.append(
                f"Batch {batch_id}: {quality.rows} rows were read, {written} were written, {quality.dropped} dropped, "
                f"{quality.quarantined} quarantined."
            )

    def record_missed(self) -> None:
        """Record batches of this run that Spark's listener never reported, and how long folders were listed."""
        self._record_missing(self._last_committed())
        record_listings(self._run, self._epoch, self._listing_ms)

    def _missing(self, last: int) -> list[int]:
        first = self._first_of_epoch if self._last_recorded is None else self._last_recorded + 1
        # Earlier rounds and attempts of this update have recorded their own.
        recorded = partial(self._run.context.events.has_batch, self._run.name, self._epoch)
        return [batch for batch in range(max(first, self._first - 100), last + 1) if not recorded(batch)]

    def _record_missing(self, last: int) -> None:
        for batch_id in self._missing(last):
            if batch_id not in self._recorded:
                self._recorded.add(batch_id)
                self._record(batch_id, None, None, self._end_offsets(batch_id), {})

    def _end_offsets(self, batch_id: int) -> list[str | None] | None:
        """Where the batch ended, from the offset log: a lost checkpoint can be rebuilt from it."""
        try:
            return list(read_offsets(self._folder, batch_id).sources)
        except CheckpointUnreadable:
            return None

    def _record(
        self,
        batch_id: int,
        input_rows: int | None,
        quality: Quality | None,
        end_offsets: Any,
        measures: Mapping[str, Any],
        views: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        commit = self._commits.find(batch_id) if self._commits else None
        recount = self._recounts.get(batch_id)
        counts = batch_counts(
            BatchCounts(input_rows, quality), commit, recount,
            has_rules=bool(self._run.dataset.expectations), appends=self._appends,
        )  # fmt: skip
        if counts.origin == RECOMPUTED and recount is not None:
            views = self._view_rules(recount.observed)
        self._check(batch_id, commit, counts.quality)
        output = self._output_rows(commit, counts)
        if batch_id >= self._first:
            self._add_to_outcome(counts, output or 0, commit)
        details = quality_details(counts.quality or _NO_ROWS, self._run.dataset.name)
        details["expectations"] += views
        message = _message(batch_id, self._run.name, output, counts)
        self._run.context.say(
            f"BATCH      {message}", flow=self._run.name, batch=batch_id, level=logging.DEBUG
        )
        self._run.emit(
            "flow_progress",
            message,
            level="METRICS",
            batch_id=batch_id,
            epoch=self._epoch,
            details=flow_progress(
                FlowStatus.RUNNING,
                metrics={**row_metrics(counts.input_rows, output, commit), **measures},
                **details,
                quality_known=counts.quality_known,
                counts_origin=counts.origin,
                counts_reason=counts.reason,
                **engine_details(commit),
                version=commit.version if commit else None,
                end_offsets=end_offsets,
            ),
        )

    def _add_to_outcome(self, counts: BatchCounts, output: int, commit: BatchCommit | None) -> None:
        quality = counts.quality or _NO_ROWS
        self._run.outcome.add_batch(
            input_rows=output if counts.input_rows is None else counts.input_rows,
            output_rows=output,
            dropped_rows=quality.dropped,
            quarantined_rows=quality.quarantined,
            version=commit.version if commit else None,
        )

    def _output_rows(self, commit: BatchCommit | None, counts: BatchCounts) -> int | None:
        if self._commits is not None:
            return commit.rows if commit else 0
        # A sink without a readable log: the rows that it was given.
        accepted = counts.quality.accepted if counts.quality else 0
        return None if counts.origin == UNKNOWN else accepted

    def _last_committed(self) -> int:
        last = last_committed_batch(self._folder)
        return -1 if last is None else last


def _message(batch_id: int, flow: str, output: int | None, counts: BatchCounts) -> str:
    written = "an unknown number of" if output is None else str(output)
    text = f"Batch {batch_id} of {flow}: {written} rows written"
    if counts.quality_known:
        quality = counts.quality or _NO_ROWS
        text += f", {quality.dropped} dropped"
        text += f", {quality.quarantined} quarantined" if quality.quarantined else ""
        text += f", {quality.files} files that can't be read quarantined" if quality.files else ""
    if counts.origin == RECOMPUTED:
        return f"{text} (its driver died before it could record it; the rows were counted again)."
    if counts.origin == UNKNOWN:
        rejected = "" if counts.quality_known else ", and what its rules rejected,"
        return f"{text}; what it read{rejected} is not known: {counts.reason}."
    return f"{text}."
