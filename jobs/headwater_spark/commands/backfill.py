"""The Spark side of ``headwater backfill``: arguments in, report out."""

from __future__ import annotations

from headwater.contract.backfill_arguments import BackfillArguments
from headwater.graph.pipeline_project import PipelineProject
from headwater_spark.backfills.backfill import run_backfill
from headwater_spark.backfills.then_stream import load_then_stream


def answer(project: PipelineProject, arguments: BackfillArguments) -> int:
    """Do what the arguments ask for and print the result; returns the exit code. Raises HeadwaterError."""
    if arguments.then_stream:
        return load_then_stream(project, arguments)
    run_backfill(project, arguments).show(as_json=arguments.as_json)
    return 0
