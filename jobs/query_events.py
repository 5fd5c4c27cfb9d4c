"""What ``headwater events --sql`` becomes: ``query_events.py PIPELINE_DIR --sql TEXT [--limit N] [the roots] [--json]``."""

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
from headwater_spark.commands.query import answer_query


def main(argv: Sequence[str]) -> int:
    """Answer a query over event logs; returns the exit code."""

    def action() -> int:
        parser = Parser(prog="headwater events", allow_abbrev=False)
        add_project_arguments(parser)
        parser.add_argument("--sql", required=True)
        parser.add_argument("--limit", type=int, default=50)
        parsed = parser.parse_args(argv)
        project = open_project(
            parsed.pipeline,
            storage=parsed.storage,
            warehouse=parsed.warehouse,
            parameters=dict(parsed.parameters),
        )
        return answer_query(project, parsed.sql, parsed.limit, as_json=parsed.as_json)

    return run_and_report(action, as_json="--json" in argv)


if __name__ == "__main__":
    run_process(main)
