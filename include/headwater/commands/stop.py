"""``stop``: end the running update of a pipeline after the batches in flight."""

from __future__ import annotations

import os
import signal
import socket
import time
from datetime import timedelta

from headwater.contract.printing import print_json
from headwater.errors import UpdateInProgress, UsageError
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import holder_of, is_held

_LOOK_SECONDS = 0.2


def stop_update(project: PipelineProject, wait: timedelta, *, as_json: bool) -> int:
    """Send SIGTERM to the driver that holds the pipeline's lease, and wait until it has let go.

    Args:
        wait: how long; the driver finishes its batches first.

    Raises:
        UsageError: the driver runs on another machine, or as another user.
        UpdateInProgress: it has not ended in time.
    """
    if not is_held(project.state_folder):
        return _say("IDLE", f"No update of {project.pipeline_id} is running.", as_json=as_json)
    lease = project.state_folder / "update.lease"
    holder = holder_of(lease.read_text(encoding="utf-8"))
    process, host = holder.get("process"), holder.get("host")
    if not isinstance(process, int) or process <= 1 or host != socket.gethostname():
        raise UsageError(
            f"The update {holder.get('update_id')} runs on {host}, as process {process}: it can be stopped from there only.",
            where=lease,
            remedy="Run `headwater stop` on that machine; under Airflow, pause the DAG and mark the task as failed.",
        )
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise UsageError(
            f"The update {holder.get('update_id')} runs as another user (process {process}).",
            where=lease,
            remedy="Stop it as that user.",
        ) from None
    ends = time.monotonic() + wait.total_seconds()
    while is_held(project.state_folder):
        if time.monotonic() >= ends:
            raise UpdateInProgress(
                f"The update {holder.get('update_id')} was told to stop, and has not ended within {wait.total_seconds():g} s.",
                where=lease,
                remedy="It ends after the batches in flight; give a longer --wait.",
            )
        time.sleep(_LOOK_SECONDS)
    return _say("STOPPED", f"The update {holder.get('update_id')} has ended.", as_json=as_json)


def _say(state: str, message: str, *, as_json: bool) -> int:
    if as_json:
        print_json({"state": state, "message": message})
    else:
        print(message)
    return 0
