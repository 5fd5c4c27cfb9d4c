"""How much of its source tables' retention each stream has used up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.definitions.intervals import FILE_RETENTION, LOG_RETENTION, duration
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.fingerprint import source_table
from headwater.metrics.source_position import source_backlog
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


@dataclass(frozen=True)
class RetentionUse:
    """A stream and a table that it reads: the age of the oldest unread commit, and how long the table keeps such, in seconds.

    ``waiting`` is None where the lag is not known, ``kept`` where the table can't be read (``reason`` says why).
    """

    flow: str
    dataset: str
    source: str
    waiting: float | None
    kept: float | None
    reason: str | None = None

    @property
    def percent(self) -> float | None:
        """How much of the time is used up."""
        if self.waiting is None or self.kept is None:
            return None
        return 100 * self.waiting / self.kept if self.kept else 100.0

    def as_dict(self) -> dict[str, Any]:
        """The use as JSON values."""
        return {**asdict(self), "percent": self.percent}


def retention_use(project: PipelineProject, manifest: Manifest) -> list[RetentionUse]:
    """Every stream from a table, in the manifest's order; sources that are not there yet are left out."""
    uses = []
    for flow in manifest.output_flows:
        checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
        for source in flow.sources:
            table = source_table(source, project.warehouse) if source.streaming else None
            name = source.name or source.location or str(source.path)
            try:
                retention = _retention_seconds(table) if table is not None else None
            except (SourceUnreachable, *STORE_ERRORS) as error:
                uses.append(RetentionUse(flow.name, flow.target, name, None, None, error.what))
                continue
            if retention is None:
                continue
            backlog = source_backlog(flow, source, checkpoint, project.warehouse, store=project.object_store)
            waiting = None if backlog.unknown else backlog.seconds or 0.0
            uses.append(RetentionUse(flow.name, flow.target, name, waiting, retention, backlog.unknown))
    return uses


def _retention_seconds(table: Place) -> float | None:
    """For how many seconds the table keeps commits and the files that they removed; None where there is no table.

    Raises:
        SourceUnreachable: where its log is damaged or may not be read.
        StoreRefused, StoreUnreachable: as of ``delta_table``.
    """
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        configuration = delta_table(table).metadata().configuration
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise SourceUnreachable(f"The log of the Delta table can't be read: {error}", where=table) from None
    lengths = [duration(configuration.get(key, default)) for key, default in (LOG_RETENTION, FILE_RETENTION)]
    return min((length.total_seconds() for length in lengths if length is not None), default=None)
