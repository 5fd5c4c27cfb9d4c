"""Registers tables at the end of whatever has changed them, and records what became of it.

Decision 0196.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from headwater.errors import HeadwaterError, LeaseUnreachable, UpdateInProgress
from headwater.event_log.details import operation_progress
from headwater.event_log.redaction import quoted
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metastore.conditions import MetastoreRefused
from headwater.metastore.registration import Registration, is_due, register

_log = logging.getLogger("headwater.metastore")
KIND = "METASTORE"


class Follower:
    """Keeps a metastore in step while something holds the pipeline's lease; a trouble that lasts is recorded once."""

    def __init__(self, project: PipelineProject, events: EventLogWriter) -> None:
        self._project = project
        self._events = events
        self._said: Sequence[str] = ()

    def follow(self, manifest: Manifest | None) -> None:
        """Bring the entries up to date. Rows are committed: nothing that fails here is raised, it is left for the next time."""
        if self._project.spec.metastore is None or manifest is None:
            return
        try:
            done = register(self._project, manifest)
        except Exception as error:  # what nobody foresaw must not take the rows' update with it
            done = Registration(troubles=[_unforeseen(error)])
        if done.steps:
            tables = [
                {"action": str(step.action), "table": str((step.entry or step).name)} for step in done.steps
            ]
            self._events.emit(
                "operation_progress",
                f"The metastore follows the tables: {', '.join(map(str, done.steps))}.",
                details=operation_progress(KIND, "COMPLETED", None, tables=tables),
            )
        said = [str(trouble) for trouble in done.troubles]
        if said != self._said:
            for trouble in done.troubles:
                self._warn(trouble)
        self._said = said

    def _warn(self, trouble: HeadwaterError) -> None:
        message = f"A table is not registered as it should be, the next update tries again: {trouble.what}"
        details = operation_progress(KIND, "FAILED", None, condition=trouble.condition, where=trouble.where)
        self._events.emit("operation_progress", message, level="WARN", details=details)
        _log.warning("%s\n%s", message, trouble, extra={"pipeline": self._project.pipeline_id})


def follow_stored(project: PipelineProject, events: EventLogWriter) -> None:
    """Bring the entries up to date with the graph that storage has, after a verb that has changed tables."""
    if project.spec.metastore is not None:
        Follower(project, events).follow(read_manifest(project.state_folder / FILE_NAME))


def follow_if_due(project: PipelineProject, manifest: Manifest, events: EventLogWriter, holder: str) -> None:
    """In an update without news: register what an earlier one could not, unless somebody else is writing. ``holder``: of the lease."""
    if is_due(project):
        with suppress(UpdateInProgress, LeaseUnreachable), project.lease(holder):
            Follower(project, events).follow(manifest)


def _unforeseen(error: Exception) -> HeadwaterError:
    return MetastoreRefused(
        f"The entries could not be brought up to date: {quoted(error)}.",
        remedy="No row is lost. Run an update again; if it stays, report it.",
    )
