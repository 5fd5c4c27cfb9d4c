"""Batch first, then stream: load all history in one commit that records where it ended, and start a stream there.

The commit is the only step that matters. It carries the rows and the end positions of the sources, as a batch of the
flow's first epoch. If the driver is killed before it, nothing was written; after it, the positions are read back from the
table, and an update in between is refused (CHECKPOINT_LOST): it would read everything a second time.

Decision 0112.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headwater.backfills.conditions import BackfillNotPossible, RangeAlreadyWritten
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.contract.printing import print_json
from headwater.definitions.dataset import Dataset
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import FlowCommit, flow_commits, head_version, table_exists
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.new_epoch_plan import delta_offset
from headwater.doctor.open_epoch import open_at
from headwater.event_log.details import operation_progress, user_action
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection
from headwater.kafka.login import PROTOCOL, login_settings
from headwater.kafka.offsets import BrokerTopics
from headwater.preflight.flow_start import Positions, StreamSource
from headwater_spark.backfills.backfill import stored_dataset
from headwater_spark.backfills.range_rows import judged_rows
from headwater_spark.backfills.source_limits import everything
from headwater_spark.backfills.table_plan import check_definition
from headwater_spark.delta_writes.batch_commits import as_metadata
from headwater_spark.delta_writes.tables import create_table
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import judged_target, target_of
from headwater_spark.execution.live_context import live_context
from headwater_spark.execution.report import run_report
from headwater_spark.execution.update import UpdateRequest, run_update
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.update_records import user_name
from headwater_spark.rules.expectations import Quality


def load_then_stream(project: PipelineProject, arguments: BackfillArguments) -> int:
    """Load the history of tables that have never run, then run an update of them; returns the exit code.

    Raises:
        RangeAlreadyWritten: a table's stream has run already; nothing was written.
        BackfillNotPossible: a source has no position at which a stream can begin, or the definition keeps state.
        UpdateInProgress: an update is running.
    """
    load_id = str(uuid.uuid4())
    with live_context(project, load_id, arguments.request_id) as context:
        datasets = [stored_dataset(context, name) for name in arguments.tables]
        runs = [run for dataset in datasets for run in _runs(context, dataset)]
        for run in runs:
            _check(run)
        for dataset in datasets:
            _check_new(context, dataset)
        with project.lease(f"history-{load_id}") as lease:
            leased = replace(context, lease=lease)
            loaded = [_load(replace(run, context=leased), dry_run=arguments.dry_run) for run in runs]
    if arguments.dry_run:
        if arguments.as_json:
            print_json({"state": "PLANNED", "flows": [], "history": loaded})
        else:
            _show(loaded)
            print("Nothing was written.")
        return 0
    selection = Selection(tuple(dataset.name for dataset in datasets))
    report = run_report(run_update(project, UpdateRequest(selection, arguments.request_id)))
    if arguments.as_json:
        print_json({**report.as_dict(), "history": loaded})
    else:
        _show(loaded)
        report.show(as_json=False)
    return report.exit_code


def _runs(context: UpdateContext, dataset: Dataset) -> list[FlowRun]:
    return [FlowRun.of(context, dataset, flow) for flow in context.pipeline.evaluation.flows_of(dataset)]


def _check(run: FlowRun) -> None:
    check_definition(run)
    flow = run.flow
    kinds = [source.kind for source in _case(run).start.sources or ()]
    if run.is_view or flow.once or not kinds:
        raise BackfillNotPossible(
            f"{flow.name!r} is not a stream: an update reads all of its history anyway.",
            where=flow.location,
            remedy="headwater run PIPELINE_DIR",
        )
    if any(kind not in (SourceKind.DELTA, SourceKind.DATASET, SourceKind.KAFKA) for kind in kinds):
        raise BackfillNotPossible(
            f"{flow.name!r} reads {', '.join(map(str, kinds))}: only on Delta tables and Kafka topics can a stream start from a position.",
            where=flow.location,
            remedy="Run an update: a stream of files reads existing files first, maxFilesPerTrigger of them per batch.",
        )


def _check_new(context: UpdateContext, dataset: Dataset) -> None:
    """Raise RangeAlreadyWritten where a flow of the table has run: its stream has read the history, or a part of it.

    A table whose history has been loaded passes: after a crash the same command is run again.
    """
    cases = [_case(run) for run in _runs(context, dataset)]
    if any(_history(case.commits) is not None for case in cases):
        return
    started = [case.flow.name for case in cases if case.start.checkpoint.epochs() or case.commits]
    if started:
        raise RangeAlreadyWritten(
            f"{', '.join(started)} of {dataset.name!r} has run already, and has read its history, or a part of it, by itself.",
            where=context.table_path(dataset),
            remedy="Give a range to fill: --range event-time --column COLUMN --from FIRST --to END. Or refill the table: "
            f"headwater run PIPELINE_DIR --full-refresh {dataset.name}",
        )


def _case(run: FlowRun) -> FlowCase:
    return FlowCase(run.context.pipeline.project, run.context.pipeline.manifest, run.entry)


def _load(run: FlowRun, *, dry_run: bool) -> dict[str, Any]:
    """Load the history of one flow, unless the table has it, and open the epoch that begins where it ends."""
    context = run.context
    case = _case(run)
    report = {"dataset": run.dataset.name, "flow": run.name}
    commit = _history(flow_commits(run.table, *case.identity.names))
    if case.start.checkpoint.epochs():
        return {**report, "rows": 0, "message": "it has run already; the stream continues from its position."}
    rows, ends = 0, commit.end_offsets if commit is not None else None
    if ends is None:
        ends = _ends(context, case.start.sources or ())
        rows = _write(run, ends, dry_run=dry_run)
        if dry_run:
            shown = "; ".join(json.dumps(end) for end in ends)
            return {
                **report,
                "rows": rows,
                "message": f"{rows} rows of history would be loaded, up to {shown}.",
            }
        case = _case(run)
    position: Positions = tuple(json.dumps(end, separators=(",", ":")) for end in ends)
    context.check_lease()
    opened = open_at(case, position, {}, context.check_lease)
    message = f"{rows} rows of history were loaded; {opened}."
    run.emit(
        "operation_progress",
        f"{run.name}: {message}",
        details=operation_progress(
            "BACKFILL", "COMPLETED", None, history=True, rows=rows, position=list(position)
        ),
    )
    return {**report, "rows": rows, "message": message}


def _history(commits: list[FlowCommit]) -> FlowCommit | None:
    """The commit that loaded the history, known by the end of its id."""
    return next((c for c in commits if c.transaction is not None and c.transaction[0].endswith(_MARK)), None)


# The end of the id of a history's commit.
_MARK = "-history"


def _ends(context: UpdateContext, sources: tuple[StreamSource, ...]) -> tuple[Any, ...]:
    """Where each source ends now, and its stream will begin."""
    return tuple(
        _kafka_ends(context, source.options) if source.table is None
        else json.loads(delta_offset(source.table, head_version(source.table) + 1))
        for source in sources
    )  # fmt: skip


def _kafka_ends(context: UpdateContext, options: Mapping[str, str]) -> dict[str, dict[str, int]]:
    servers = options["kafka.bootstrap.servers"]
    ends: dict[str, dict[str, int]] = {}
    login = login_settings(context.pipeline.project, servers, options.get(PROTOCOL, ""))
    with BrokerTopics(servers, login=login) as topics:
        for topic, part in topics.partitions(options):
            ends.setdefault(topic, {})[str(part)] = topics.bounds((topic, part))[1]
    return ends


def _write(run: FlowRun, ends: tuple[Any, ...], *, dry_run: bool) -> int:
    """Write the history in one commit that records where it ended; returns how many rows were (or would be) written."""
    sources = _case(run).start.sources or ()
    limits = tuple(everything(source, end) for source, end in zip(sources, ends, strict=True))
    context, table = run.context, run.table
    epoch = context.unused_epoch(run.dataset.name, run.name)
    transaction = run.transaction(epoch, end_offsets=list(ends))
    transaction = replace(transaction, application=transaction.application + _MARK)
    try:
        with judged_rows(run, limits) as (judged, quality, _):
            if dry_run:
                return quality.accepted
            context.check_lease()
            if not table_exists(table):
                schema = context.pipeline.evaluation.table_schema(run.dataset)
                create_table(context.spark, run.dataset, table, schema)
            _announce(run)
            judged_target(run, target_of(run), epoch).write_judged(judged, quality, transaction)
            _record(run, quality)
            return quality.accepted
    except Exception as error:
        raise flow_error(run.flow, error, context.pipeline.evaluation.labels) from None


def _announce(run: FlowRun) -> None:
    run.context.say(f"HISTORY    {run.name} is loaded as one batch", flow=run.name)
    run.emit(
        "user_action",
        f"{user_name()} loads the history of {run.name} as one batch.",
        details=user_action("BACKFILL", user_name(), backfill_id=run.context.update_id, history=True),
    )


def _record(run: FlowRun, quality: Quality) -> None:
    version = head_version(run.table)
    run.context.say(
        f"WRITTEN    {run.name}: {quality.accepted} rows of history, version {version}", flow=run.name
    )
    run.emit(
        "operation_progress",
        f"The history of {run.name} was loaded: {quality.accepted} rows.",
        details=operation_progress(
            "BACKFILL", "IN_PROGRESS", None, history=True, quality=as_metadata(quality)
        ),
    )


def _show(loaded: list[dict[str, Any]]) -> None:
    for report in loaded:
        print(f"{report['dataset']}: {report['message']}")
