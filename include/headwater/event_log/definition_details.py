"""The ``details`` of events that describe a pipeline: its flows (the lineage), its tables and views, its sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.definitions.dataset import DatasetKind
from headwater.graph.manifest import ColumnEntry, DatasetEntry, FlowEntry, Manifest

_DATASET_TYPES = {
    DatasetKind.STREAMING_TABLE: "STREAMING_TABLE",
    DatasetKind.MATERIALIZED_VIEW: "MATERIALIZED_VIEW",
    DatasetKind.TEMPORARY_VIEW: "VIEW",
}
# A flow of AUTO CDC has this kind in its declaration, and Lakeflow's word for it in the log.
_CHANGE_FLOWS = {"changes": "CHANGE", "snapshots": "SNAPSHOT_CHANGE"}


def flow_type(flow: FlowEntry, target: DatasetEntry, kind: str = "default") -> str:
    """Lakeflow's word for what a flow does to its target. ``kind``: of the declaration, where it is known."""
    if kind in _CHANGE_FLOWS:
        return _CHANGE_FLOWS[kind]
    if target.kind is DatasetKind.TEMPORARY_VIEW:
        return "VIEW"
    if target.kind is DatasetKind.MATERIALIZED_VIEW:
        return "MATERIALIZED_VIEW"
    return flow.output_mode.event_log_type


def flow_definition(
    manifest: Manifest,
    flow: FlowEntry,
    *,
    kind: str = "default",
    explain_text: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    comment: str | None = None,
    time_columns: Sequence[str] = (),
) -> dict[str, Any]:
    """Details of a ``flow_definition`` event. ``explain_text``: the query's plan, as Spark prints it; ``time_columns``: those by which
    a watermark could free its state.
    """
    target = manifest.dataset(flow.target)
    is_sink = target.kind is DatasetKind.SINK
    return {
        "flow_definition": {
            "output_dataset": flow.target,
            "output_sink": flow.target if is_sink else None,
            "input_datasets": [{"name": name} for name in flow.inputs],
            "sources": [
                {
                    "kind": str(s.kind),
                    "name": s.name or s.path or s.location or s.format,
                    "streaming": s.streaming,
                }
                for s in flow.sources
            ],
            "flow_type": flow_type(flow, target, kind),
            "once": flow.once,
            "schema": _schema(target.columns),
            "explain_text": explain_text,
            "spark_conf": dict(spark_conf or {}),
            "comment": comment,
            "time_columns": list(time_columns),
        }
    }


def dataset_definition(manifest: Manifest, dataset: DatasetEntry) -> dict[str, Any]:
    """Details of a ``dataset_definition`` event, of a table or a view."""
    return {
        "dataset_definition": {
            "dataset_type": _DATASET_TYPES.get(dataset.kind, "STREAMING_TABLE"),
            "num_flows": len(manifest.flows_into(dataset.name)),
            "expectations": [
                {"name": rule.name, "constraint": rule.constraint, "action": str(rule.action)}
                for rule in dataset.expectations
            ],
            "comment": dataset.comment,
            "schema": _schema(dataset.columns),
            "properties": dict(dataset.table_properties),
            "partition_columns": list(dataset.partition_columns),
            "cluster_columns": list(dataset.cluster_columns),
        }
    }


def sink_definition(sink: DatasetEntry) -> dict[str, Any]:
    """Details of a ``sink_definition`` event; the options are those that say where to, without secrets."""
    return {"sink_definition": {"format": sink.sink_format, "options": dict(sink.sink_options)}}


def _schema(columns: tuple[ColumnEntry, ...]) -> list[dict[str, Any]]:
    return [column.model_dump() for column in columns]
