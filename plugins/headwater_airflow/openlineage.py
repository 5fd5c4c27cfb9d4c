"""What a task read and wrote, for Airflow's OpenLineage provider, where that is installed.

The provider asks an operator once its task has ended. Nothing of it is imported unless it asks.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from typing import Any

from headwater.event_log.flow_result import FlowResult
from headwater.graph.lineage import LineageNode, lineage_edges
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.following.update_watch import request_results
from headwater_airflow.roots import pipeline_project


def operator_lineage(
    project: PipelineProject, datasets: Collection[str] | None, results: Collection[FlowResult]
) -> Any | None:
    """Inputs and outputs of some datasets (None: of all), with their columns and the rows written.

    Returns:
        The provider's ``OperatorLineage``; None where the provider is not installed, or the graph is not known yet.

    """
    # The manifest of the last update has the values of the configuration in its sources, the committed one their keys.
    manifest = read_manifest(project.state_folder / FILE_NAME)
    if manifest is None or importlib.util.find_spec("openlineage") is None:
        return None
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    edges = lineage_edges(manifest, project.warehouse, datasets)
    written = _rows_by_dataset(manifest, results)
    return OperatorLineage(
        inputs=[InputDataset(node.namespace, node.name, facets=_facets(node)) for node in edges.inputs],
        outputs=[
            OutputDataset(
                node.namespace,
                node.name,
                facets=_facets(node),
                outputFacets={
                    "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(
                        rowCount=written[node.dataset]
                    )
                }
                if node.dataset in written
                else {},
            )
            for node in edges.outputs
        ],
    )


def task_lineage(pipeline: str, datasets: Collection[str] | None, request: str) -> Any | None:
    """The lineage of the task of a request, with the row counts of the event log."""
    project = pipeline_project(pipeline)
    return operator_lineage(project, datasets, request_results(project.state_folder, request))


def _facets(node: LineageNode) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    if not node.columns:
        return {}
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=column.name, type=column.type) for column in node.columns
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}


def _rows_by_dataset(manifest: Manifest, results: Collection[FlowResult]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for result in results:
        if result.dataset is not None and any(d.name == result.dataset for d in manifest.outputs):
            rows[result.dataset] = rows.get(result.dataset, 0) + result.output_rows
    return rows
