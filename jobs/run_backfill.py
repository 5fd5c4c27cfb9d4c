"""What ``headwater backfill`` becomes: ``run_backfill.py PIPELINE_DIR [its arguments]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.commands.backfill_arguments import parse_backfill_arguments
from headwater.commands.failure_report import run_and_report
from headwater.graph.pipeline_project import open_project
from headwater_spark.backfill_command import answer


def main(argv: Sequence[str]) -> int:
    """Backfill as the arguments say; returns the exit code."""

    def action() -> int:
        arguments = parse_backfill_arguments(argv)
        project = open_project(
            arguments.pipeline,
            storage=arguments.storage,
            warehouse=arguments.warehouse,
            parameters=arguments.parameters,
        )
        return answer(project, arguments)

    return run_and_report(action, as_json="--json" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
