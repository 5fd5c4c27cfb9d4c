"""A flow that runs once: a bounded read written in one commit, and not again until a full refresh."""

from __future__ import annotations

from headwater.definitions.output_kind import OutputKind
from headwater.delta_log.table_history import head_version
from headwater.event_log.details import FlowStatus
from headwater_spark.delta_writes.batch_commits import BatchCommits, quality_details
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import count_rows, target_of, write_rows
from headwater_spark.execution.start_checks import bounded_state


def run_once(run: FlowRun) -> None:
    """Write the flow's rows unless it has done so; after a crash the transaction id prevents a second write."""
    state, definition = bounded_state(run), run.context.pipeline.manifest.definition_hash
    if state.completed:
        run.outcome.status = FlowStatus.COMPLETED
        run.checkpoint.update_state(definition_hash=definition, role=run.role)
        return
    run.checkpoint.update_state(role=run.role)
    with run.settings():
        _write(run, state.epoch)
    run.context.check_lease()
    left = head_version(run.delta_table) if run.delta_table is not None else None
    run.checkpoint.update_state(
        of_epoch=state.epoch,
        sink_id=run.destination_id(),
        sink_version=left,
        completed=True,
        definition_hash=definition,
    )
    run.outcome.status = FlowStatus.COMPLETED


def _write(run: FlowRun, epoch: int) -> None:
    table, transaction = run.delta_table, run.transaction(epoch)
    if table is not None and transaction.is_in(table):
        return  # its driver died before it could record it
    rows = run.context.pipeline.evaluation.evaluate(run.flow)
    quality = write_rows(run, rows, target_of(run), transaction, epoch)
    version = head_version(table) if table is not None else None
    merged = table is not None and run.mode.kind is OutputKind.CHANGES
    commit = BatchCommits(table, transaction.application).find(0) if table is not None and merged else None
    written = commit.rows if commit is not None else quality.accepted
    message = f"{run.name} appended {written} rows, once."
    count_rows(run, quality, message, version, commit, epoch=epoch)
    run.outcome.data_quality = quality_details(quality, run.dataset.name)
