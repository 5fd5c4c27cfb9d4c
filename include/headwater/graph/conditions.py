"""What can be wrong between pipelines before a graph is resolved: one class per condition."""

from __future__ import annotations

from headwater.errors import InvalidPipeline


class PipelineIdTaken(InvalidPipeline):
    """Two folders beside each other have pipelines of one id."""

    condition = "PIPELINE_ID_TAKEN"
