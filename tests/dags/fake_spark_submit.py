"""Stands in for `spark-submit` and the driver: tells the event log what a scenario says, and ends as it says.

The scenario, by attempt, is in the file that FAKE_DRIVER names; what was called is added to the file beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

from tests.dags.pipeline_folder import UpdateLog

from headwater.errors import FlowFailed, FlowInterrupted
from headwater.event_log.details import FlowStatus, UpdateState


def main() -> int:
    arguments = sys.argv[1:]
    script = next(i for i, a in enumerate(arguments) if a.endswith(("run_update.py", "run_maintenance.py")))
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name in (
        "storage",
        "warehouse",
        "request-id",
        "attempt",
        "max-attempts",
        "requested-at",
        "tables",
        "full-refresh",
        "flows",
        "reset-checkpoint",
        "only",
        "wait",
    ):
        parser.add_argument(f"--{name}")
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--full-refresh-all", action="store_true")
    parser.add_argument("--refresh-failed", action="store_true")
    parser.add_argument("--announced-together", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--yes", action="store_true")
    given = parser.parse_args(arguments[script + 1 :])
    file = Path(os.environ["FAKE_DRIVER"])
    call = {
        **vars(given),
        "conf": arguments[:script],
        "variables": {k: v for k, v in os.environ.items() if k.startswith("HEADWATER_PARAMETER_")},
        "store": {k: v for k, v in os.environ.items() if k.startswith("AWS_") and k != "AWS_CA_BUNDLE"},
        "cwd": str(Path.cwd()),
        "sid": os.getsid(0) == os.getpid(),
    }
    with file.with_suffix(".calls").open("a") as calls:
        calls.write(json.dumps(call, default=str) + "\n")
    steps = json.loads(file.read_text())[int(given.attempt or 1) - 1]
    print("a line for the task's log", flush=True)
    return play(steps, given)


def play(steps: dict, given: argparse.Namespace) -> int:
    """Tell each flow's end, then end."""
    state = Path(given.storage) / "pipelines" / given.folder.name
    requested_at = datetime.fromisoformat(given.requested_at) if given.requested_at else None
    log = UpdateLog(
        state,
        given.request_id,
        steps.get("update", f"update-{given.attempt}"),
        requested_at,
        together=given.announced_together,
    )
    log.update(UpdateState.RUNNING)
    for flow, what in steps.get("flows", {}).items():
        if what == "transient":
            last = given.attempt == given.max_attempts
            log.flow(flow, FlowStatus.FAILED, error=FlowInterrupted("Broker away."), will_retry=not last)
        elif what == "terminal":
            log.flow(flow, FlowStatus.FAILED, error=FlowFailed("Bad cast."), will_retry=False)
        elif what == "cut off":
            rows = {"num_input_rows": 3, "num_output_rows": 3}
            log.flow(flow, FlowStatus.RUNNING, metrics=rows)
            log.flow(flow, FlowStatus.FAILED, error=FlowFailed("Bad cast."), will_retry=False)
        elif what == "skipped":
            log.flow(flow, FlowStatus.SKIPPED)
        else:
            log.completed(flow, rows=what)
    if steps.get("hangs"):
        time.sleep(60)
    if steps.get("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    log.update(UpdateState.FAILED if steps.get("exit") else UpdateState.COMPLETED)
    log.close()
    if "report" in steps:
        print(json.dumps(steps["report"]), flush=True)
    return steps.get("exit", 0)


if __name__ == "__main__":
    sys.exit(main())
