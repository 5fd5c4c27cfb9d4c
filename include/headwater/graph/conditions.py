"""What can be wrong between pipelines before a graph is resolved: one class per condition."""

from __future__ import annotations

from headwater.errors import InvalidPipeline


class PipelineIdTaken(InvalidPipeline):
    """Two folders beside each other have pipelines of one id."""

    condition = "PIPELINE_ID_TAKEN"


class InvalidParameter(InvalidPipeline):
    """A value given for a run is of another type than its parameter, is missing, or is for no parameter of the pipeline."""

    condition = "INVALID_PARAMETER"


class RealTimeNotPermitted(InvalidPipeline):
    """A flow asks for Spark's real-time mode, and Spark, or this machine, does not permit it for this query."""

    condition = "REAL_TIME_NOT_PERMITTED"
