"""What ``headwater explain`` becomes: ``explain_view.py PIPELINE_DIR VIEW [the roots] [--json]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# Started by itself, it has this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.arguments import Parser, add_project_arguments
from headwater.contract.failure_report import run_and_report
from headwater.contract.process import run_process
from headwater.graph.pipeline_project import open_project
from headwater_spark.commands.explain import explain_view


def main(argv: Sequence[str]) -> int:
    """Explain how a view is refreshed; returns the exit code."""

    def action() -> int:
        parser = Parser(prog="headwater explain", allow_abbrev=False)
        add_project_arguments(parser)
        parser.add_argument("view")
        parsed = parser.parse_args(argv)
        project = open_project(
            parsed.pipeline,
            storage=parsed.storage,
            warehouse=parsed.warehouse,
            parameters=dict(parsed.parameters),
        )
        return explain_view(project, parsed.view, as_json=parsed.as_json)

    return run_and_report(action, as_json="--json" in argv)


if __name__ == "__main__":
    run_process(main)
