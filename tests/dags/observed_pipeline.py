"""A pipeline as updates leave it, for those who look at it: real tables, real checkpoints, a real event log."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from tests.dags.pipeline_folder import MEDALLION, UpdateLog, write_pipeline

from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.definitions.source import SourceKind
from headwater.delta_log.versions import table_head
from headwater.event_log.details import FlowStatus, UpdateState, flow_progress
from headwater.graph.manifest import FILE_NAME, ExpectationEntry, FlowEntry, SourceEntry, read_manifest
from headwater.incremental.techniques import Planned, Technique


def many_tables(count: int) -> dict[str, tuple[str, ...]]:
    """A graph of so many tables, in chains of five."""
    names = [f"table_{number:02d}" for number in range(count)]
    return {name: () if number % 5 == 0 else (names[number - 1],) for number, name in enumerate(names)}


def write_observed_pipeline(
    roots: Path, name: str = "medallion", datasets=MEDALLION, batches: int = 3, airflow: str = "{}"
) -> Path:
    """Write the pipeline `name` below `roots`, after an update of some batches; gives its folder of state."""
    folder = write_pipeline(roots / "pipelines" / name, datasets, airflow=airflow)
    manifest = read_manifest(folder / FILE_NAME)
    rule = ExpectationEntry(name="positive", constraint="amount > 0", action="drop")
    manifest = manifest.model_copy(
        update={
            "datasets": tuple(
                entry.model_copy(update={"expectations": (rule,)}) for entry in manifest.datasets
            ),
            "flows": tuple(flow.model_copy(update={"sources": _sources(flow)}) for flow in manifest.flows),
        }
    )
    (folder / FILE_NAME).write_text(manifest.to_json())
    state = roots / "storage" / "pipelines" / name
    log = UpdateLog(state, "request-1")
    log.update(UpdateState.RUNNING)
    for number, dataset in enumerate(datasets):
        table = roots / "warehouse" / "shop" / dataset
        write_deltalake(table, pa.table({"id": [1, 2, 3]}), mode="append")
        checkpoint = flow_checkpoint(state, dataset, dataset)
        checkpoint.write_state(FlowState(sink_id=table_head(table).table_id, completed=True))
        offset = {"logOffset": 0}
        for name_read in datasets[dataset]:
            head = table_head(roots / "warehouse" / "shop" / name_read)
            offset = {"reservoirId": head.table_id, "reservoirVersion": 1, "index": -1}
        for part in ("offsets", "commits"):
            (checkpoint.epoch_folder(0) / part).mkdir(parents=True)
            (checkpoint.epoch_folder(0) / part / "0").write_text(f"v1\n{{}}\n{json.dumps(offset)}")
        (checkpoint.epoch_folder(0) / "metadata").write_text('{"id": "query"}')
        if dataset == "gold":
            plan = Planned(Technique.GROUP_AGGREGATE, note="it only grew")
            log.flow(dataset, FlowStatus.STARTING)
            log.writer.emit(
                "planning_information", "planned", flow=dataset, dataset=dataset, details=plan.details()
            )
        for batch in range(batches):
            tell_batch(log, dataset, batch, rows=10 + number + batch)
    log.writer.flush()
    for dataset in datasets:
        log.flow(dataset, FlowStatus.COMPLETED, version=0)
    log.update(UpdateState.COMPLETED)
    log.close()
    return state


def _sources(flow: FlowEntry) -> tuple[SourceEntry, ...]:
    return tuple(
        SourceEntry(
            kind=SourceKind.DATASET, streaming=True, name=name, location=f"shop/{name}", format="delta"
        )
        for name in flow.inputs
    )


def tell_batch(log: UpdateLog, flow: str, batch: int, *, rows: int = 10, failed: int = 1) -> None:
    """Record a batch of which one row fails a rule and is dropped, and one is quarantined."""
    log.writer.emit(
        "flow_progress",
        f"Batch {batch} of {flow}.",
        level="METRICS",
        flow=flow,
        dataset=flow,
        batch_id=batch,
        epoch=0,
        details=flow_progress(
            FlowStatus.RUNNING,
            metrics={
                "num_input_rows": rows + 2,
                "num_output_rows": rows,
                "batch_duration_ms": 1200,
                "backlog_records": 7,
            },
            dropped=failed,
            quarantined=1,
            expectations=[
                {"name": "positive", "dataset": flow, "passed_records": rows, "failed_records": failed}
            ],
        ),
    )
