"""What updates have written into the volume that all services share."""

from __future__ import annotations

from types import SimpleNamespace

from deltalake import DeltaTable
from tests.team.containers import Stack

from headwater_airflow.following.request import request_id
from headwater_airflow.following.update_record import request_updates


def updates_of(stack: Stack, name: str, run_id: str) -> list[str]:
    """How the attempts at a run's update ended, as the event log has it, oldest first."""
    state_folder = stack.volume("data") / "storage" / "pipelines" / name
    found = request_updates(SimpleNamespace(state_folder=state_folder), request_id(name, run_id, ""))
    return [str(update.state) for update in found]


def ids(stack: Stack, name: str) -> list[int]:
    """The rows of a table."""
    table = stack.volume("data") / "warehouse" / "shop" / name
    # The folder is there before its first commit is.
    if not any(table.glob("_delta_log/*.json")):
        return []
    return sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())
