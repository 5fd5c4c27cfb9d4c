"""At its first start a flow may go on from the checkpoint of a job that was no pipeline."""

from __future__ import annotations

from headwater.definitions.expectation import needs_judgement
from headwater.event_log.details import operation_progress
from headwater.preflight.imported_checkpoint import ImportTarget, import_checkpoint
from headwater.storage.place import place_of
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import takes_streams


def take_over(run: FlowRun) -> None:
    """Copy the checkpoint that the flow's declaration names, where the flow has none; raises ImportRefused."""
    job = run.flow.import_checkpoint
    if job is None or run.checkpoint.surviving_state() is not None:
        return
    native = takes_streams(run) and not needs_judgement(run.dataset.expectations)
    target = ImportTarget(
        run.name,
        run.delta_table,
        run.destination_id(),
        sum(source.streaming for source in run.entry.sources),
        repeats=native and run.delta_table is not None,
        where=run.flow.location,
    )
    epoch = run.context.unused_epoch(run.dataset.name, run.name)
    store = run.context.pipeline.project.object_store
    last = import_checkpoint(place_of(job, store=store), run.checkpoint, epoch, target)
    run.context.say(f"IMPORTED   {run.name}: goes on after batch {last} of {job}", flow=run.name)
    run.emit(
        "operation_progress",
        f"{run.name} goes on from the checkpoint {job}.",
        epoch=epoch,
        details=operation_progress("CHECKPOINT_IMPORTED", "COMPLETED", None, path=job, batch=last),
    )
