"""The event log under diagnosis: it belongs to no flow, and keeps none from starting."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.delta_log.commits import commit_file, newest_version
from headwater.doctor.diagnosis import Diagnosis
from headwater.errors import HeadwaterError
from headwater.event_log.conditions import EventRecordsLost
from headwater.event_log.event import event_table
from headwater.event_log.lost_records import lost_records
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import is_held
from headwater.preflight.damage import Damage


def diagnose_event_log(project: PipelineProject) -> Iterator[Diagnosis]:
    """Whether its newest records are there; not while an update writes them."""
    try:
        files = lost_records(project.state_folder)
        if files:  # who writes now may have come to its commit meanwhile
            files = [] if is_held(project.state_folder) else lost_records(project.state_folder)
    except (
        PermissionError,
        FileNotFoundError,
        HeadwaterError,
    ):  # who reads the log says what is wrong with it
        return
    if not files:
        return
    table = event_table(project.state_folder)
    following = commit_file(table, (newest_version(table) or 0) + 1)
    lost = EventRecordsLost(
        "The event log has records that no commit of it names: its newest commit is gone, or the process that wrote them was killed "
        "before it. `status` and `events` do not show them.",
        where=following,
        remedy="Restore this file from a backup, before the next update writes another one of its name. If there is none, go on: tables and "
        "checkpoints do not depend on it. The next update ends the one that seems to run, and records again what batches did.",
    )
    evidence = tuple(f"{file.name} is newer than the newest commit" for file in files)
    yield Diagnosis("", "event log", Damage(lost, evidence, blocks=False), ())
