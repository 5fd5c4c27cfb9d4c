"""What spark-submit runs for an update: ``run_update.py PIPELINE_DIR [the arguments of `headwater run`]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.arguments import RunArguments, parse_run_arguments
from headwater.contract.process import run_process
from headwater.contract.program import run_program
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.object_files import refuse_missing_bucket
from headwater.updates.continuous_mode import spark_settings, with_trigger


def answer(project: PipelineProject, arguments: RunArguments) -> int:
    """Answer the arguments; Java starts while Python imports the engine and what reads the event log (decision 0183)."""
    from headwater_spark.session import java_meanwhile

    if not arguments.dry_run and not arguments.validate:
        # The lease looks at storage before anything is done; tables would be missed only after minutes of Spark.
        refuse_missing_bucket(project.warehouse)
    with java_meanwhile(project.pipeline_id, spark_settings(with_trigger(project, arguments.continuous))):
        # pyarrow imports pandas with the first rows.
        for name in ("deltalake", "pandas", "pyarrow"):
            import_module(name)
        from headwater_spark.commands import update
    return update.answer(project, arguments)


def main(argv: Sequence[str]) -> int:
    """Run, plan or validate as the arguments say; returns the exit code."""
    return run_program(argv, parse_run_arguments, answer)


if __name__ == "__main__":
    run_process(main)
