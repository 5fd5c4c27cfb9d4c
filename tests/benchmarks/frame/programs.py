"""Programs that are measured from their command to their end; a smoke run calls the same in this process's session."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.runs import Run, timed, timed_process
from tests.pipeline_case import SPARK

import run_update as run_update_program
from headwater_spark.session import start_session

PEERS = Path(__file__).parents[1] / "peers"
CHECKOUT = Path(__file__).parents[3]
FLOORS = {"PYTHONPATH": ":".join(str(CHECKOUT / floor) for floor in ("include", "jobs", "plugins"))}


# What is measured inside this process has all cores, as an update has.
WHOLE_MACHINE = {"spark.master": "local[*]", "spark.sql.shuffle.partitions": str(os.cpu_count() or 2)}


def session(*, whole: bool = False) -> SparkSession:
    """The session of a smoke run, which is the tests' own; ``whole``: one for what is measured inside this process."""
    return start_session("tests", WHOLE_MACHINE if whole else SPARK)


def headwater_run(bench: Bench, arguments: Sequence[str | Path]) -> Run:
    """``headwater run`` with these arguments."""
    if not bench.smoke:
        return timed_process([sys.executable, "-m", "headwater", "run", *arguments, "--json"], FLOORS)

    def call() -> None:
        with redirect_stdout(io.StringIO()) as told:
            code = run_update_program.main([*map(str, arguments), "--json"])
        assert code == 0, told.getvalue()

    return timed(call)


def peer_program(
    bench: Bench, file: str, function: Callable[..., object], arguments: Sequence[str | Path]
) -> Run:
    """A peer's file as a program; in a smoke run its function, which gets the session and the arguments."""
    words = list(map(str, arguments))
    if bench.smoke:
        return timed(lambda: function(session(), *words))
    return timed_process([sys.executable, PEERS / file, *words], FLOORS)
