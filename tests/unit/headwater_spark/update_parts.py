"""An update's context over a folder, without Spark: what is decided from names, states and logs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.flow import Flow
from headwater.definitions.sink import Sink, SinkKind
from headwater.leases.lease import BesideUpdates
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.output_mode import OutputMode


def dataset(name: str = "orders", kind: DatasetKind = DatasetKind.STREAMING_TABLE, **more: Any) -> Dataset:
    """A declared table."""
    return Dataset(name, DatasetName(None, "shop", name), kind, **more)


def sink(kind: SinkKind, format_: str, name: str = "out", function: Any = None, **options: str) -> Dataset:
    """A declared sink."""
    return dataset(name, DatasetKind.SINK, sink=Sink(kind, format_, options, function))


def flow(name: str = "orders", target: str | None = None, **more: Any) -> Flow:
    """A flow; into the dataset of its name unless given another."""
    return Flow(name, target or name, lambda: None, **more)


class _Manifest(SimpleNamespace):
    """As much of a manifest as flows need."""

    rows_read = False
    catalog = None
    schema_name = None

    @property
    def definition_hash(self) -> str:
        return str(self.source_hash)

    def flow(self, name: str) -> Any:
        return next(entry for entry in self.flows if entry.name == name)


class Events:
    """Takes what an update records."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, str, dict[str, Any]]] = []

    def emit(self, kind: str, message: str, **more: Any) -> None:
        self.emitted.append((kind, message, more))

    def set_known_batches(self, *_: Any) -> None:
        """Nothing depends on it here."""

    def has_batch(self, flow: str, epoch: int, batch_id: int) -> bool:
        """Whether this update has recorded the batch."""
        recorded = [
            (more.get("flow"), more.get("epoch"), more.get("batch_id")) for _, _, more in self.emitted
        ]
        return (flow, epoch, batch_id) in recorded


def _entry(dataset: Dataset | None, name: str) -> Any:
    """A dataset as the manifest has it: what is asked of a sink."""
    sink = dataset.sink if dataset is not None else None
    options = dict(sink.options) if sink is not None else {}
    return SimpleNamespace(
        name=name, sink_format=sink.format if sink is not None else None, sink_options=options
    )


def context_of(
    tmp_path: Path,
    *datasets: Dataset,
    flows: tuple[Flow, ...] = (),
    modes: Mapping[str, OutputMode] | None = None,
    recorded: Mapping[tuple[str, int], int] | None = None,
    **more: Any,
) -> UpdateContext:
    """The context of an update of pipeline ``p`` with state and tables below ``tmp_path``."""
    state, warehouse = tmp_path / "state", tmp_path / "warehouse"
    batches: Future[dict[tuple[str, int], int]] = Future()
    batches.set_result(dict(recorded or {}))

    def table_path(one: Dataset) -> Path:
        return warehouse / str(one.table_location("p"))

    evaluation = SimpleNamespace(
        table_path=table_path,
        output_mode_of=lambda one: (modes or {}).get(one.name, OutputMode(one.declared_output)),
        labels=frozenset(),
        frames={},
        find_table=lambda _: None,
        changes={one.name: SimpleNamespace() for one in flows},
        flows_of=lambda one: [flow for flow in flows if flow.target == one.name],
        kind_of=lambda one: one.kind,
        cloud=SimpleNamespace(take_listings=lambda _: []),
    )
    by_name = {one.name: one for one in datasets}
    pipeline = SimpleNamespace(
        project=SimpleNamespace(
            pipeline_id="p",
            state_folder=state,
            warehouse=warehouse,
            configuration={},
            spec=SimpleNamespace(spark={}),
        ),
        evaluation=evaluation,
        dataset=lambda name: by_name[name],
        flow=lambda name: next(one for one in flows if one.name == name),
        manifest=_Manifest(
            flows=(),
            source_hash="hash",
            datasets=tuple(SimpleNamespace(name=one.name) for one in datasets),
            dataset=lambda name: _entry(next((d for d in datasets if d.name == name), None), name),
        ),
        registry=SimpleNamespace(datasets=lambda: list(datasets)),
        session=SimpleNamespace(),
    )
    context = UpdateContext(
        pipeline=pipeline,  # type: ignore[arg-type]
        spark=SimpleNamespace(),  # type: ignore[arg-type]
        events=Events(),  # type: ignore[arg-type]
        listener=SimpleNamespace(),  # type: ignore[arg-type]
        update_id="u1",
        recorded_batches=batches,
        lease=more.pop("lease", None) or BesideUpdates(),
        **more,
    )
    context.said = []  # type: ignore[attr-defined]
    context.say = lambda line, **_: context.said.append(line)  # type: ignore[attr-defined, method-assign]
    return context


def run_of(context: UpdateContext, table: Dataset | None = None, one: Flow | None = None) -> FlowRun:
    """The run of a flow, of ``orders`` unless another is given."""
    return FlowRun.of(context, table or dataset(), one or flow())


def state_of(context: UpdateContext, dataset: str = "orders", flow: str = "orders", **fields: Any) -> Any:
    """Write a flow's state; its checkpoint."""
    checkpoint = flow_checkpoint(context.pipeline.project.state_folder, dataset, flow)
    checkpoint.update_state(**fields)
    return checkpoint


def plan_batch(folder: Path, batch_id: int, *ends: Any, done: bool = False) -> None:
    """Lay down a batch in a checkpoint, as Spark plans it; ``done``: and marks it as done."""
    import json

    lines = [
        "v1",
        json.dumps({"batchWatermarkMs": 0}),
        *("-" if end is None else json.dumps(end) for end in ends),
    ]
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch_id)).write_text("\n".join(lines))
    if done:
        (folder / "commits").mkdir(parents=True, exist_ok=True)
        (folder / "commits" / str(batch_id)).write_text("v1\n{}")
