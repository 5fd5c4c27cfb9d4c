"""Run quarantined rows through their flow's current code and rules, once: docs/expectations.md, "Replay"."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.offsets import last_committed_batch, last_planned_batch
from headwater.contract.known_values import check_row_filter
from headwater.contract.quarantine_arguments import ReplayArguments
from headwater.definitions.dataset import Dataset, DatasetKind, quarantine_folder
from headwater.definitions.expectation import ViolationAction
from headwater.delta_log.table_history import head_version, table_exists
from headwater.errors import UnknownQuarantinedRow, UsageError
from headwater.event_log.details import user_action
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.storage.place import Place, located
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, in_own_session
from headwater_spark.execution.failures import cause_messages, flow_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import target_of, write_batch
from headwater_spark.execution.live_context import live_context
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.update_records import user_name
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.replays.file_replay import replayable_files
from headwater_spark.replays.replay_marks import IS_FILE, ReplayMarks, settle
from headwater_spark.replays.replayed_query import HELD_ID, query_over
from headwater_spark.rules.expectations import any_broken
from headwater_spark.rules.judgement import is_kept, judged_batch, mark_rows, own_rows
from headwater_spark.rules.source_records import JSON_BACK, with_source


@dataclass(frozen=True)
class FlowReplay:
    """The result for a flow's rows: ``replayed`` are in the table now, ``held`` still break a quarantine rule.

    ``dropped`` break a rule that drops, ``left_out`` are no longer returned by the flow's query; both are discarded.
    ``method``: ``source``, ``row`` or ``file``; for files, ``files`` were read, ``damaged_files`` still can't be.
    """

    flow: str
    method: str
    replayed: int = 0
    held: int = 0
    dropped: int = 0
    left_out: int = 0
    files: int = 0
    damaged_files: int = 0

    def __str__(self) -> str:
        text = (
            f"{self.flow} (from its {self.method}): {self.replayed} rows replayed, {self.held} still held, "
        )
        text += f"{self.dropped} dropped, {self.left_out} left out by the query."
        if self.method == "file":
            text += f" {self.files} files were read; {self.damaged_files} still can't be."
        return text


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
        lines = [str(flow) for flow in self.flows]
        return "\n".join(lines) or f"{self.table} has no held row: nothing to replay."


def replay(project: PipelineProject, arguments: ReplayArguments) -> ReplayReport:
    """Replay the held rows of a table that the arguments choose.

    A row is marked before its flow's rows are written, and after: a replay that was killed in between is resolved from the
    table's own transactions when the next one begins. One that only stood still writes nothing when it goes on.

    Raises:
        UsageError: the table, a column or the method is not as the arguments say; nothing was written.
        UpdateInProgress: an update is running.
        TableOwned: another pipeline fills the table.
        ExpectationViolated: a row breaks a rule of kind fail; nothing of its flow was written.
    """
    replay_id = str(uuid.uuid4())
    with live_context(project, replay_id, lease=project.lease(replay_id)) as context:
        dataset = _dataset(context, arguments.table)
        refuse_foreign_tables(project, context.pipeline.manifest, [dataset.name])
        location = dataset.table_location(project.pipeline_id)
        path = located(project.warehouse, quarantine_folder(str(location)))
        if not table_exists(path):
            raise UnknownQuarantinedRow(f"{dataset.name!r} has no quarantined rows.", where=path)
        filled_by = [flow.name for flow in context.pipeline.registry.flows() if flow.target == dataset.name]
        check_row_filter(arguments.chosen, path, filled_by, [rule.name for rule in dataset.expectations])
        context.check_lease()
        settle(
            context.spark,
            path,
            context.table_path(dataset),
            lambda name: _identity_of(context, dataset, name),
        )
        # The current version: the marks made below would change a frame over the newest one.
        version = str(head_version(path))
        quarantined = context.spark.read.format("delta").option("versionAsOf", version).load(str(path))
        quarantined = quarantined.where(replace(arguments.chosen, status=RowStatus.HELD).where)
        flows = [row[0] for row in quarantined.select(c.FLOW).distinct().orderBy(c.FLOW).collect()]
        reports = [_replay_flow(context, dataset, path, name, quarantined, arguments) for name in flows]
        return ReplayReport(
            replay_id, dataset.name, tuple(report for of_flow in reports for report in of_flow)
        )


def _dataset(context: UpdateContext, name: str) -> Dataset:
    datasets = {d.name: d for d in context.pipeline.registry.datasets() if d.stored}
    dataset = datasets[known_name(context.pipeline.manifest, name, datasets, "table")]
    if context.pipeline.evaluation.kind_of(dataset) is DatasetKind.MATERIALIZED_VIEW:
        raise UsageError(
            f"{name!r} is a materialized view: all of it is recomputed, and its quarantine with it.",
            where=dataset.location,
            remedy="Correct the source, the query or the rule, and run an update.",
        )
    return dataset


def _replay_flow(
    context: UpdateContext,
    dataset: Dataset,
    path: Place,
    name: str,
    quarantined: DataFrame,
    arguments: ReplayArguments,
) -> list[FlowReplay]:
    flows = [flow for flow in context.pipeline.registry.flows() if flow.target == dataset.name]
    flow = next((flow for flow in flows if context.identity(dataset.name, flow.name).flow == name), None)
    if flow is None:
        raise UsageError(
            f"The flow {name!r}, whose rows are held, is no longer in the pipeline.",
            remedy=f"Restore it, or discard its rows: `headwater quarantine discard ... --flow {name}`.",
        )
    run = FlowRun.of(context, dataset, flow)
    quarantined = quarantined.where(F.col(c.FLOW) == name).persist()
    try:
        with run.settings():
            _check_done(run, quarantined)
            files = [] if arguments.of_rows else quarantined.where(IS_FILE).collect()
            rows = quarantined.where(f"NOT {IS_FILE}")
            reports = []
            if not (files and rows.isEmpty()):
                reports.append(_replay_rows(run, path, rows, arguments))
            if files:
                reports.append(_replay_files(run, path, files))
            for report in reports:
                _record(run, report)
            return reports
    except UsageError:
        raise
    except Exception as error:
        raise flow_error(flow, error, context.pipeline.evaluation.labels) from None
    finally:
        quarantined.unpersist()


def _replay_rows(run: FlowRun, path: Place, quarantined: DataFrame, arguments: ReplayArguments) -> FlowReplay:
    rows, method = _recomputed(run, quarantined, arguments)
    context, rules, marks = run.context, run.dataset.expectations, _marks_of(run, path)
    chosen = quarantined.count()
    with judged_batch(in_own_session(mark_rows(rows, rules)), rules, run.table) as (judged, quality):
        if quality.accepted:
            accepted = judged.where(is_kept(rules))
            context.check_lease()
            marks.mark_replaying(accepted.select(HELD_ID), quality.accepted)
            write_batch(context, own_rows(accepted), target_of(run), _transaction(run, marks))
            marks.check_written(run.table)
            context.check_lease()
            marks.finish()
        dropped = ~any_broken(rules, ViolationAction.QUARANTINE) & any_broken(rules, ViolationAction.DROP)
        if quality.dropped:
            reason = "dropped by a rule when it was replayed"
            context.check_lease()
            marks.mark(judged.where(dropped).select(HELD_ID), RowStatus.DISCARDED, reason)
        if chosen > quality.rows:
            ids = quarantined.select(F.col(c.ID).alias(HELD_ID))
            removed = ids.join(judged.select(HELD_ID), HELD_ID, "left_anti")
            context.check_lease()
            marks.mark(removed, RowStatus.DISCARDED, "left out by the flow's query when it was replayed")
    return FlowReplay(
        run.name, method, quality.accepted, quality.quarantined, quality.dropped, chosen - quality.rows
    )


def _replay_files(run: FlowRun, path: Place, files: Sequence[Row]) -> FlowReplay:
    """Read files again; rows of theirs that are to be held are pending until the table has the others."""
    context, flow, rules = run.context, run.flow, run.dataset.expectations
    marks = _marks_of(run, path, files=True)
    context.pipeline.evaluation.cloud.again[flow.name] = frozenset(
        json.loads(entry[c.ROW])["path"] for entry in files
    )
    frame = context.pipeline.evaluation.evaluate(flow)
    readable, rows = replayable_files(frame, flow, files, cause_messages)
    damaged = len(files) - len(readable)
    if rows is None:
        return FlowReplay(flow.name, "file", damaged_files=damaged)
    marked = in_own_session(mark_rows(with_source(rows), rules))
    with judged_batch(marked, rules, run.table) as (judged, quality):
        ids = [(entry[c.ID],) for entry in readable]
        context.check_lease()
        marks.mark_replaying(context.spark.createDataFrame(ids, f"{HELD_ID} STRING"), len(ids))
        if quality.quarantined:
            context.check_lease()
            table = QuarantineTable(path, marks.flow, _epoch(run), context.update_id, rules)
            table.hold_pending(judged, _transaction(run, marks), context.update_id)
        if quality.accepted:
            accepted = own_rows(judged.where(is_kept(rules)))
            write_batch(context, accepted, target_of(run), _transaction(run, marks))
            marks.check_written(run.table)
        context.check_lease()
        marks.finish()
    return FlowReplay(
        flow.name, "file", quality.accepted, quality.quarantined, quality.dropped, 0, len(readable), damaged
    )


def _record(run: FlowRun, report: FlowReplay) -> None:
    files = f" and {report.files} files" if report.files else ""
    removed = report.dropped + report.left_out
    discarded = f", {removed} were discarded" if removed else ""
    run.emit(
        "user_action",
        f"{report.replayed} quarantined rows{files} of {run.dataset.name} were replayed, {report.held} are still held{discarded}.",
        details=user_action(
            "REPLAY_QUARANTINE", user_name(), replay_id=run.context.update_id, **asdict(report)
        ),
    )


def _check_done(run: FlowRun, quarantined: DataFrame) -> None:
    """Refuse rows of a batch that a killed driver left half done: the batch is repeated, and would bring them again."""
    state = run.checkpoint.read_state()
    if state is None or run.flow.once:
        return
    folder = run.checkpoint.epoch_folder(state.epoch)
    planned = last_planned_batch(folder)
    if planned is None or planned == last_committed_batch(folder):
        return
    if target_of(run).has(run.transaction(state.epoch, planned)):
        return
    if not quarantined.where((F.col(c.EPOCH) == state.epoch) & (F.col(c.BATCH) == planned)).isEmpty():
        raise UsageError(
            f"Rows of batch {planned} of {run.name!r} are held, and the batch is not done: its driver was stopped.",
            where=run.flow.location,
            remedy="Run an update first; it judges these rows again. Then replay.",
        )


def _recomputed(run: FlowRun, quarantined: DataFrame, arguments: ReplayArguments) -> tuple[DataFrame, str]:
    """The held rows as the flow's current query makes them, or as they were stored; and which of the two."""
    flow, evaluation = run.flow, run.context.pipeline.evaluation
    evaluation.cloud.again[flow.name] = frozenset()
    frame = evaluation.evaluate(flow)
    by_source = arguments.method == "source" or (arguments.method == "auto" and not arguments.corrections)
    if by_source and arguments.corrections:
        raise UsageError("--set corrects stored rows.", remedy="Omit --from source.")
    if by_source and quarantined.where(F.col(c.SOURCE_RECORD).isNull()).isEmpty():
        rows = query_over(frame, quarantined)
        if rows is not None:
            return rows, "source"
    if arguments.method == "source":
        raise UsageError(
            f"The rows of {flow.name!r} can't be recomputed from records of its source: a row may come from several records.",
            where=flow.location,
            remedy="Use --from row: the stored rows are judged again.",
        )
    row = F.from_json(F.col(c.ROW), frame.schema, JSON_BACK)
    rows = quarantined.select(row.alias("row"), F.col(c.ID).alias(HELD_ID)).select("row.*", HELD_ID)
    for column, expression in arguments.corrections.items():
        field = next((f for f in frame.schema.fields if f.name.lower() == column.lower()), None)
        if field is None:
            raise UsageError(
                f"--set {column}: {flow.name!r} returns no such column.",
                remedy=f"It returns: {', '.join(frame.columns)}.",
            )
        rows = rows.withColumn(field.name, F.expr(expression).cast(field.dataType))
    return rows, "row"


def _transaction(run: FlowRun, marks: ReplayMarks) -> BatchTransaction:
    metadata = run.metadata(epoch=_epoch(run), replay=run.context.update_id)
    return BatchTransaction(marks.application, 0, json.dumps(metadata))


def _epoch(run: FlowRun) -> int:
    state = run.checkpoint.read_state()
    return state.epoch if state else 0


def _identity_of(context: UpdateContext, dataset: Dataset, name: str) -> FlowIdentity:
    """The names in the commits of the flow whose rows are held under ``name``; those of a flow that was removed are its own."""
    flows = (flow for flow in context.pipeline.registry.flows() if flow.target == dataset.name)
    identities = (context.identity(dataset.name, flow.name) for flow in flows)
    removed = FlowIdentity(context.pipeline.project.pipeline_id, name)
    return next((identity for identity in identities if identity.flow == name), removed)


def _marks_of(run: FlowRun, path: Place, *, files: bool = False) -> ReplayMarks:
    return ReplayMarks(run.context.spark, path, *run.identity.names, run.context.update_id, files)
