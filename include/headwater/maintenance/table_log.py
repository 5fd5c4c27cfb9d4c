"""Checkpoints of a table's log, so that readers need not read a long tail of commits; and removal of old commits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from headwater.definitions.intervals import LOG_RETENTION, duration
from headwater.delta_log.commits import commit_file, log_folder
from headwater.graph.pipeline_project import PipelineProject
from headwater.maintenance.chore import ChoreKind, Finding, Rewriter, Step
from headwater.maintenance.file_layout import delta_rs_may_write, open_table
from headwater.maintenance.reader_positions import reader_positions
from headwater.storage.delta_tables import table_log
from headwater.storage.listing import looked_over
from headwater.storage.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Spark writes one after ten commits of its own.
_LONG_TAIL = 10


@dataclass(frozen=True)
class LogCheckpoint:
    """The log of one table. Tables with features that delta-rs does not write are left to Spark's own checkpoints."""

    project: PipelineProject
    subject: str
    table: Place
    now: Callable[[], float] = time.time
    kind: ChoreKind = ChoreKind.CHECKPOINT

    def look(self) -> Finding:
        """Count the commits since the last checkpoint."""
        opened = table_log(self.table)
        behind = opened.version() - _last_checkpoint(self.table)
        if behind < _LONG_TAIL or not delta_rs_may_write(opened):
            return None
        with looked_over(log_folder(self.table)):
            size = sum(
                commit_file(self.table, version).stat().st_size
                for version in range(opened.version() - behind + 1, opened.version() + 1)
                if commit_file(self.table, version).exists()
            )
        return Step(self.kind, self.subject, "write a checkpoint of the table's log", behind, size)

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:  # noqa: ARG002 - the form of Chore
        """Write the checkpoint; commits beyond the table's retention go, unless a reader is still among them."""
        opened = open_table(self.table)
        opened.create_checkpoint()
        if not self._readers_are_near(opened):
            return "checkpoint written; old commits stay for a reader that is far behind"
        opened.cleanup_metadata()
        return "checkpoint written"

    def _readers_are_near(self, opened: DeltaTable) -> bool:
        with looked_over(self.project.storage):
            positions = reader_positions(self.project, self.table, str(opened.metadata().id), now=self.now())
        if any(position.unknown for position in positions):
            return False
        configured = opened.metadata().configuration.get(*LOG_RETENTION)
        retention = duration(configured) or timedelta(days=30)
        versions = [p.snapshot if p.snapshot is not None else p.version for p in positions]
        first = min((v for v in versions if v is not None), default=None)
        moments = [p.since for p in positions if p.since is not None]
        if first is not None and first <= opened.version():
            try:
                moments.append(commit_file(self.table, first).stat().st_mtime)
            except FileNotFoundError:
                return False
        # A day of room: Delta counts whole days.
        oldest = self.now() - retention.total_seconds() + timedelta(days=1).total_seconds()
        return all(moment > oldest for moment in moments)


def _last_checkpoint(table: Place) -> int:
    try:
        pointer = json.loads((table / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8"))
        return int(pointer["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1  # none, or Delta does without it as well
