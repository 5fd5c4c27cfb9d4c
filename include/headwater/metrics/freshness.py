"""How old the newest data of each table is."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from headwater.delta_log.versions import last_change, table_head
from headwater.errors import SourceUnreachable
from headwater.event_log.redaction import redact_text
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject


@dataclass(frozen=True)
class Freshness:
    """A table's newest commit of data: its age in seconds, its version, its time (seconds since 1970).

    All None where there is no table yet, or no such commit in its log; ``unknown``: why it can't be known.
    """

    dataset: str
    seconds: float | None = None
    version: int | None = None
    committed_at: float | None = None
    unknown: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The freshness as JSON values; ``unknown`` only where there is a reason."""
        values = asdict(self)
        if self.unknown is None:
            del values["unknown"]
        return values


def pipeline_freshness(project: PipelineProject, manifest: Manifest) -> list[Freshness]:
    """The freshness of every table, in the manifest's order. Commits that change no rows do not count.

    Raises:
        SourceUnreachable: a table's log is damaged or may not be read.
    """
    return [_freshness(project, manifest, entry.name) for entry in manifest.tables]


def freshness_as_far_as_known(project: PipelineProject, manifest: Manifest) -> list[Freshness]:
    """As ``pipeline_freshness``; a table whose log can't be read is ``unknown``, and the others are shown."""
    return [_freshness_or_reason(project, manifest, entry.name) for entry in manifest.tables]


def _freshness_or_reason(project: PipelineProject, manifest: Manifest, dataset: str) -> Freshness:
    try:
        return _freshness(project, manifest, dataset)
    except SourceUnreachable as error:
        return Freshness(dataset, unknown=f"{redact_text(error.what)} {error.remedy}".strip())


def _freshness(project: PipelineProject, manifest: Manifest, dataset: str) -> Freshness:
    table = manifest.table_path(project.warehouse, dataset)
    head = table_head(table)
    commit = last_change(table, head.version) if head else None
    if commit is None:
        return Freshness(dataset)
    return Freshness(dataset, max(0.0, time.time() - commit.timestamp), commit.version, commit.timestamp)
