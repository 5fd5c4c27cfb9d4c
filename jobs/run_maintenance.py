"""What spark-submit runs for tables that only Spark rewrites: the arguments of ``headwater maintenance``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.failure_report import run_and_report
from headwater.contract.maintenance_arguments import parse_maintenance_arguments
from headwater.contract.process import run_process
from headwater.graph.pipeline_project import open_project
from headwater_spark.commands.maintenance import answer


def main(argv: Sequence[str]) -> int:
    """Rewrite the tables that are due; returns the exit code."""

    def action() -> int:
        parsed = parse_maintenance_arguments(argv)
        project = open_project(
            parsed.pipeline,
            storage=parsed.storage,
            warehouse=parsed.warehouse,
            parameters=dict(parsed.parameters),
        )
        return answer(project, parsed)

    return run_and_report(action, as_json="--json" in argv)


if __name__ == "__main__":
    run_process(main)
