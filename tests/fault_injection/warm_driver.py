"""A driver that starts Spark before it is told what to do: the next one gets ready while another is being killed.

``warm_driver.py PIPELINE STORAGE WAREHOUSE``; then one line of JSON on standard input, ``[verb, argument ...]``. From there on
it is the program that the verb becomes. Without a line it ends, and has done nothing.
"""

from __future__ import annotations

import json
import sys

from tests.fault_injection.python_stops import stop_python_writers
from tests.fault_injection.stops import stop_store_writers

import run_backfill
import run_update
from headwater.graph.pipeline_project import open_project
from headwater_spark.resolution.graph_resolution import resolved_pipeline
from headwater_spark.session import start_session

PROGRAMS = {"run": run_update.main, "backfill": run_backfill.main}


def main(folder: str, storage: str, warehouse: str) -> int:
    """Get ready, wait for the line, do it; returns the program's exit code."""
    stop_python_writers()
    stop_store_writers()
    project = open_project(folder, storage=storage, warehouse=warehouse)
    with resolved_pipeline(project, start_session(project.pipeline_id, project.spark_conf)):
        pass
    line = sys.stdin.readline()
    if not line:
        return 0
    verb, *arguments = json.loads(line)
    return PROGRAMS[verb]([folder, "--json", f"--storage={storage}", f"--warehouse={warehouse}", *arguments])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
