"""Putting quarantined rows through their flow's current code and rules, once: docs/expectations.md, "Replay"."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.checkpoints.table_history import table_exists
from headwater.commands.quarantine_arguments import ReplayArguments
from headwater.definitions.dataset import Dataset, DatasetKind, quarantine_folder
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.flow import Flow
from headwater.errors import UnknownQuarantinedRow, UsageError
from headwater.event_log.details import user_action
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import RowFilter, literal
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.foreach_batch import BatchTransaction, apart, application_id
from headwater_spark.execution.progress import ProgressListener
from headwater_spark.execution.sink_commits import has_transaction, latest_version
from headwater_spark.execution.stream_start import batch_target
from headwater_spark.execution.targets.delta_append import DeltaAppend
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.update_records import user_name
from headwater_spark.graph_resolution import resolved_pipeline
from headwater_spark.output_mode import OutputMode
from headwater_spark.quarantine.judgement import any_broken, is_kept, judged_batch, mark_rows, own_columns
from headwater_spark.quarantine.quarantine_table import JSON_OPTIONS
from headwater_spark.quarantine.replayed_query import HELD_ID, query_over
from headwater_spark.session import start_session


@dataclass(frozen=True)
class FlowReplay:
    """What came of a flow's rows: ``replayed`` are in the table now, ``held`` break a quarantine rule still.

    ``dropped`` break a rule that drops, ``left_out`` the flow's query does not give any more; both are discarded.
    ``method``: ``source`` or ``row``.
    """

    flow: str
    method: str
    replayed: int = 0
    held: int = 0
    dropped: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class ReplayReport:
    """A replay, flow by flow."""

    replay_id: str
    table: str
    flows: tuple[FlowReplay, ...]

    def as_dict(self) -> dict[str, object]:
        """The report as JSON values."""
        return {"state": "COMPLETED", **asdict(self)}

    def __str__(self) -> str:
        lines = [
            f"{flow.flow} (from its {flow.method}): {flow.replayed} rows replayed, {flow.held} still held, "
            f"{flow.dropped} dropped, {flow.left_out} left out by the query."
            for flow in self.flows
        ]
        return "\n".join(lines) or f"No held row of {self.table}: nothing to replay."


def replay(project: PipelineProject, arguments: ReplayArguments) -> ReplayReport:
    """Replay the held rows of a table that the arguments choose.

    A row is marked before its flow's rows are written, and after: a replay that was killed between the two is settled by
    the table's own transactions when the next begins.

    Raises:
        UsageError: the table, a column or the method is not as the arguments say; nothing was written.
        UpdateInProgress: an update is running.
        ExpectationViolated: a row breaks a rule of kind fail; nothing of its flow was written.
    """
    replay_id = str(uuid.uuid4())
    with _context(project, replay_id) as context:
        dataset = _dataset(context, arguments.table)
        location = dataset.table_location(project.pipeline_id)
        path = project.warehouse / quarantine_folder(str(location))
        if not table_exists(path):
            raise UnknownQuarantinedRow(f"{dataset.name!r} has no quarantined rows.", where=path)
        _settle(context, dataset, path)
        # As it is now: marks made below would change what a frame over the newest version gives.
        version = str(latest_version(path))
        held = context.spark.read.format("delta").option("versionAsOf", version).load(str(path))
        held = held.where(replace(arguments.chosen, status=RowStatus.HELD).where)
        flows = [row[0] for row in held.select(c.FLOW).distinct().orderBy(c.FLOW).collect()]
        reports = tuple(_replay_flow(context, dataset, path, name, held, arguments) for name in flows)
        return ReplayReport(replay_id, dataset.name, reports)


@contextmanager
def _context(project: PipelineProject, replay_id: str) -> Iterator[UpdateContext]:
    spark = start_session(project.pipeline_id, project.spec.spark)
    nothing: Future[dict[tuple[str, int], int]] = Future()
    nothing.set_result({})
    with ExitStack() as stack:
        pipeline = stack.enter_context(resolved_pipeline(project, spark))
        stack.enter_context(project.lease(replay_id))
        events = stack.enter_context(
            EventLogWriter(project.state_folder, project.pipeline_id, project.spec.name, replay_id)
        )
        pipeline.evaluation.live = True
        yield UpdateContext(pipeline, spark, events, ProgressListener(), replay_id, nothing)


def _dataset(context: UpdateContext, name: str) -> Dataset:
    datasets = [d for d in context.pipeline.registry.datasets() if d.stored]
    found = next((d for d in datasets if d.name.lower() == name.lower()), None)
    if found is None:
        raise UsageError(
            f"The pipeline has no table {name!r}.", remedy=f"It has: {', '.join(d.name for d in datasets)}."
        )
    if context.pipeline.evaluation.kind_of(found) is DatasetKind.MATERIALIZED_VIEW:
        raise UsageError(
            f"{name!r} is a materialized view: it is recomputed whole, and its quarantine with it.",
            where=found.location,
            remedy="Correct the source, the query or the rule, and run an update.",
        )
    return found


def _replay_flow(
    context: UpdateContext,
    dataset: Dataset,
    path: Path,
    name: str,
    held: DataFrame,
    arguments: ReplayArguments,
) -> FlowReplay:
    flow = next((flow for flow in context.pipeline.registry.flows() if flow.name == name), None)
    if flow is None:
        raise UsageError(
            f"The flow {name!r}, whose rows are held, is not in the pipeline any more.",
            remedy="Put it back, or discard its rows: `headwater quarantine discard ... --flow "
            + name
            + "`.",
        )
    mine = held.where(F.col(c.FLOW) == name).persist()
    try:
        with context.pipeline.evaluation.settings(flow):
            return _judge_again(context, dataset, path, flow, mine, arguments)
    except UsageError:
        raise
    except Exception as error:
        raise flow_error(flow, error, context.pipeline.evaluation.labels) from None
    finally:
        mine.unpersist()


def _judge_again(
    context: UpdateContext,
    dataset: Dataset,
    path: Path,
    flow: Flow,
    mine: DataFrame,
    arguments: ReplayArguments,
) -> FlowReplay:
    rows, method = _rows_again(context, flow, mine, arguments)
    rules = dataset.expectations
    chosen = mine.count()
    with judged_batch(apart(mark_rows(rows, rules)), rules, context.table_path(dataset)) as (judged, quality):
        if quality.kept:
            kept = judged.where(is_kept(rules))
            _mark(context, path, kept.select(HELD_ID), RowStatus.REPLAYING, None)
            _write(context, dataset, flow, kept.select(*[f"`{name}`" for name in own_columns(judged)]))
            _finish(context, path, context.update_id, RowStatus.REPLAYED)
        dropped = ~any_broken(rules, ViolationAction.QUARANTINE) & any_broken(rules, ViolationAction.DROP)
        if quality.dropped:
            reason = "dropped by a rule when it was replayed"
            _mark(context, path, judged.where(dropped).select(HELD_ID), RowStatus.DISCARDED, reason)
        if chosen > quality.rows:
            gone = mine.select(F.col(c.ID).alias(HELD_ID)).join(judged.select(HELD_ID), HELD_ID, "left_anti")
            _mark(
                context, path, gone, RowStatus.DISCARDED, "left out by the flow's query when it was replayed"
            )
    report = FlowReplay(
        flow.name, method, quality.kept, quality.quarantined, quality.dropped, chosen - quality.rows
    )
    context.events.emit(
        "user_action",
        f"{report.replayed} quarantined rows of {dataset.name} were replayed, {report.held} are held still.",
        flow=flow.name,
        dataset=dataset.name,
        details=user_action("REPLAY_QUARANTINE", user_name(), replay_id=context.update_id, **asdict(report)),
    )
    return report


def _rows_again(
    context: UpdateContext, flow: Flow, mine: DataFrame, arguments: ReplayArguments
) -> tuple[DataFrame, str]:
    frame = context.pipeline.evaluation.evaluate(flow)
    by_source = arguments.method == "source" or (arguments.method == "auto" and not arguments.corrections)
    if by_source and arguments.corrections:
        raise UsageError("--set corrects kept rows.", remedy="Leave --from source out.")
    if by_source and mine.where(F.col(c.SOURCE_RECORD).isNull()).isEmpty():
        rows = query_over(frame, mine)
        if rows is not None:
            return rows, "source"
    if arguments.method == "source":
        raise UsageError(
            f"The rows of {flow.name!r} can't be made again from records of its source: not each row comes of one record.",
            where=flow.location,
            remedy="Use --from row: the kept rows are judged again.",
        )
    row = F.from_json(F.col(c.ROW), frame.schema, {**JSON_OPTIONS, "mode": "FAILFAST"})
    rows = mine.select(row.alias("row"), F.col(c.ID).alias(HELD_ID)).select("row.*", HELD_ID)
    for column, expression in arguments.corrections.items():
        field = next((f for f in frame.schema.fields if f.name.lower() == column.lower()), None)
        if field is None:
            raise UsageError(
                f"--set {column}: {flow.name!r} returns no such column.",
                remedy=f"It returns: {', '.join(frame.columns)}.",
            )
        rows = rows.withColumn(field.name, F.expr(expression).cast(field.dataType))
    return rows, "row"


def _write(context: UpdateContext, dataset: Dataset, flow: Flow, rows: DataFrame) -> None:
    mode = context.pipeline.evaluation.output_modes.get(flow.name, OutputMode())
    target = batch_target(context, dataset, flow, mode)
    target = target or DeltaAppend(context.table_path(dataset), dataset.partition_columns)
    state = context.checkpoint(dataset.name, flow.name).read_state()
    epoch = state.epoch if state else 0
    pipeline = context.pipeline.project.pipeline_id
    metadata = {"pipeline": pipeline, "flow": flow.name, "epoch": epoch, "replay": context.update_id}
    target.write(rows, BatchTransaction(_application(context, context.update_id), 0, json.dumps(metadata)))


def _application(context: UpdateContext, replay_id: str) -> str:
    return application_id(context.pipeline.project.pipeline_id, f"replay.{replay_id}", 0)


def _mark(context: UpdateContext, path: Path, ids: DataFrame, status: RowStatus, reason: str | None) -> None:
    marked = {
        **_marks(status),
        c.STATUS_REASON: F.lit(reason).cast("string"),
        c.REPLAY_ID: F.lit(context.update_id),
    }
    table = DeltaTable.forPath(context.spark, str(path)).alias("q")
    same = f"q.{c.ID} = i.{HELD_ID}"
    table.merge(_here(context, ids).alias("i"), same).whenMatchedUpdate(set=marked).execute()


def _finish(context: UpdateContext, path: Path, replay_id: str, status: RowStatus) -> None:
    mine = f"{c.STATUS} = {literal(RowStatus.REPLAYING)} AND {c.REPLAY_ID} = {literal(replay_id)}"
    DeltaTable.forPath(context.spark, str(path)).update(mine, _marks(status))


def _marks(status: RowStatus) -> dict[str, str | Column]:
    return {c.STATUS: F.lit(str(status)), c.STATUS_AT: F.current_timestamp()}


def _here(context: UpdateContext, frame: DataFrame) -> DataFrame:
    return DataFrame(frame._jdf, context.spark)  # noqa: SLF001 - a frame of the apart session, for a merge of this one


def _settle(context: UpdateContext, dataset: Dataset, path: Path) -> None:
    """Decide what became of rows that a killed replay had marked: the table knows its transaction, or it does not."""
    rows = (
        context.spark.read.format("delta").load(str(path)).where(RowFilter(status=RowStatus.REPLAYING).where)
    )
    for (replay_id,) in rows.select(c.REPLAY_ID).distinct().collect():
        written = has_transaction(context.table_path(dataset), _application(context, replay_id), 0)
        _finish(context, path, replay_id, RowStatus.REPLAYED if written else RowStatus.HELD)
