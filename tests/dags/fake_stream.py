"""Stands in for `spark-submit` of a long stream: a child takes the pipeline's lease, and works in batches until its time is up.

Of a backfill it notes what it was asked for, and that it was done.

The child notes what happens in the file that STREAM_NOTES names. A stop is heard within a batch and obeyed after it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from headwater.contract.backfill_arguments import BackfillArguments, parse_backfill_arguments
from headwater.event_log.details import operation_progress
from headwater.event_log.live_driver import published_driver
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import open_project
from headwater.leases.file_lease import update_lease


def note(**what: object) -> None:
    """Add a line with the time."""
    with Path(os.environ["STREAM_NOTES"]).open("a") as notes:
        notes.write(json.dumps({"at": time.time(), "process": os.getpid(), **what}) + "\n")


def stream(state_folder: Path, request: str) -> int:
    """Batches of a fifth of a second; two seconds of them, or as long as the file `endless` is there."""
    batches: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: batches.append(number))
    ui = "http://127.0.0.1:4040"
    with (
        update_lease(state_folder, request, wait=timedelta(minutes=10)),
        published_driver(state_folder, request, "u", ui),
    ):
        note(what="begun", request=request)
        ends = time.monotonic() + 2
        while not batches and (time.monotonic() < ends or (state_folder / "endless").exists()):
            time.sleep(0.2)
            note(what="batch")
        note(what="stopped" if batches else "ended")
    state = "CANCELED" if batches else "COMPLETED"
    print(json.dumps({"state": state, "flows": []}), flush=True)
    return 1 if batches else 0


def record_backfill(arguments: BackfillArguments) -> None:
    """The event log's records of tables that are done."""
    project = open_project(Path(arguments.pipeline), storage=Path(arguments.storage or ""), environment={})
    with EventLogWriter(
        project.state_folder, project.pipeline_id, project.spec.name, "b", arguments.request_id
    ) as log:
        for table in arguments.tables:
            log.emit(
                "operation_progress",
                "done",
                dataset=table,
                details=operation_progress("BACKFILL", "COMPLETED", None),
            )


def main() -> int:
    """As the JVM of `spark-submit`: wait for the child, which is the driver."""
    if sys.argv[1] == "child":
        return stream(Path(sys.argv[2]), sys.argv[3])
    if any(argument.endswith("run_backfill.py") for argument in sys.argv):
        note(what="backfill", arguments=sys.argv)
        program = next(i for i, a in enumerate(sys.argv) if a.endswith("run_backfill.py"))
        record_backfill(parse_backfill_arguments(sys.argv[program + 1 :]))
        print(json.dumps({"state": "COMPLETED", "flows": []}), flush=True)
        return 0
    values = sys.argv[next(i for i, a in enumerate(sys.argv) if a.endswith("run_update.py")) + 1 :]
    storage, request = (values[values.index(name) + 1] for name in ("--storage", "--request-id"))
    state = Path(storage) / "pipelines" / Path(values[0]).name
    child = [sys.executable, "-m", "tests.dags.fake_stream", "child", str(state), request]
    return subprocess.run(child, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
