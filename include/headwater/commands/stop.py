"""``stop``: end the running update of a pipeline after the batches in flight."""

from __future__ import annotations

import os
import signal
import socket
import time
from datetime import timedelta
from typing import Any

from headwater.contract.printing import print_json
from headwater.errors import UpdateInProgress
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.holder import holder_of
from headwater.leases.lease import is_held
from headwater.leases.stop_request import request_stop

_LOOK_SECONDS = 0.2


def stop_update(project: PipelineProject, wait: timedelta, *, as_json: bool) -> int:
    """Have the driver that holds the pipeline's lease stop, and wait until it has let go.

    One of this machine gets SIGTERM; any other finds a request in storage, for which it looks every ten seconds.

    Args:
        wait: how long; the driver finishes its batches first.

    Raises:
        UpdateInProgress: it has not ended in time.
    """
    if not is_held(project.state_folder):
        return _say("IDLE", f"No update of {project.pipeline_id} is running.", as_json=as_json)
    lease = project.state_folder / "update.lease"
    holder = holder_of(lease.read_text(encoding="utf-8", errors="replace"))
    if not _signalled(holder):
        # It runs on another machine, or as another user.
        request_stop(project.state_folder, str(holder.get("update_id")))
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


def _signalled(holder: dict[str, Any]) -> bool:
    """Send SIGTERM to the holder, if it is a process of this machine that may be sent one."""
    process = holder.get("process")
    if not isinstance(process, int) or process <= 1 or holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        return False
    return True


def _say(state: str, message: str, *, as_json: bool) -> int:
    if as_json:
        print_json({"state": state, "message": message})
    else:
        print(message)
    return 0
