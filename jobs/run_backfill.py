"""What ``headwater backfill`` becomes: ``run_backfill.py PIPELINE_DIR [its arguments]``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.backfill_arguments import parse_backfill_arguments
from headwater.contract.process import run_process
from headwater.contract.program import run_program
from headwater_spark.commands.backfill import answer


def main(argv: Sequence[str]) -> int:
    """Backfill as the arguments say; returns the exit code."""
    return run_program(argv, parse_backfill_arguments, answer)


if __name__ == "__main__":
    run_process(main)
