"""What the page of a DAG says about its pipeline."""

from __future__ import annotations

from typing import Any

from headwater.definitions.airflow_spec import AirflowSpec
from headwater.definitions.dataset import DatasetKind
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest
from headwater_airflow.documentation import pipeline_doc
from headwater_airflow.entities import PipelineTask

MANIFEST = Manifest(
    headwater_version="0.1.0", pipeline_id="orders", pipeline_name="orders", schema_name="shop", source_hash="",
    datasets=(
        DatasetEntry(name="bronze", kind=DatasetKind.STREAMING_TABLE, comment="as | it\ncame"),
        DatasetEntry(name="gold", kind=DatasetKind.MATERIALIZED_VIEW),
    ),
    flows=(FlowEntry(name="gold", target="gold", streaming=False, inputs=("bronze",)),),
)  # fmt: skip


def doc(**more: Any) -> str:
    """The documentation of the DAG."""
    return pipeline_doc(PipelineTask("orders", "orders", "orders", "Orders", AirflowSpec(), **more))


def test_tables_and_graph_are_those_of_the_manifest():
    """Each dataset has a line of the table, whatever its comment holds, and the graph is there as text."""
    text = doc(manifest=MANIFEST)
    assert "| bronze | streaming table |  | as \\| it came |" in text
    assert "| gold | materialized view | bronze |  |" in text
    assert "```mermaid\nflowchart LR" in text
    assert "Only one task" not in text


def test_a_pipeline_without_a_manifest():
    """Neither is there, and why is said."""
    text = doc(without_graph="It was never validated.")
    assert "**Only one task is shown for the whole pipeline.** It was never validated." in text
    assert "mermaid" not in text
    assert "| Dataset |" not in text


def test_what_a_run_does():
    """One of a continuous pipeline does not end by itself."""
    assert "until it is stopped" in doc(continuous=True)
    assert "Each run updates" in doc()
