"""What ``headwater quarantine replay`` becomes: ``replay_quarantine.py PIPELINE_DIR TABLE [its arguments]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.commands.failure_report import run_and_report
from headwater.commands.printing import print_json
from headwater.commands.quarantine_arguments import parse_replay_arguments
from headwater.graph.pipeline_project import open_project
from headwater_spark.quarantine.replay import replay


def main(argv: Sequence[str]) -> int:
    """Replay as the arguments say; returns the exit code."""

    def action() -> int:
        arguments = parse_replay_arguments(argv)
        project = open_project(
            arguments.pipeline,
            storage=arguments.storage,
            warehouse=arguments.warehouse,
            parameters=arguments.parameters,
        )
        report = replay(project, arguments)
        if arguments.as_json:
            print_json(report.as_dict())
        else:
            print(report)
        return 0

    return run_and_report(action, as_json="--json" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
