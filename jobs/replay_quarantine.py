"""What ``headwater quarantine replay`` becomes: ``replay_quarantine.py PIPELINE_DIR TABLE [its arguments]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.printing import print_json
from headwater.contract.process import run_process
from headwater.contract.program import run_program
from headwater.contract.quarantine_arguments import ReplayArguments, parse_replay_arguments
from headwater.graph.pipeline_project import PipelineProject
from headwater_spark.replays.replay import replay


def main(argv: Sequence[str]) -> int:
    """Replay as the arguments say; returns the exit code."""
    return run_program(argv, parse_replay_arguments, _answer)


def _answer(project: PipelineProject, arguments: ReplayArguments) -> int:
    report = replay(project, arguments)
    if arguments.as_json:
        print_json(report.as_dict())
    else:
        print(report)
    return 0


if __name__ == "__main__":
    run_process(main)
