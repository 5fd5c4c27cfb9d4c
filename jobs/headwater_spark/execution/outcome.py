from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headwater.errors import HeadwaterError
from headwater.event_log.details import FlowStatus


@dataclass
class FlowOutcome:
    """The result of a flow in one update; sums over its batches."""

    flow: str
    dataset: str
    status: FlowStatus = FlowStatus.QUEUED
    batches: int = 0
    input_rows: int = 0
    output_rows: int = 0
    dropped_rows: int = 0
    quarantined_rows: int = 0
    version: int | None = None
    backlog_records: int | None = None
    seconds: float = 0.0
    error: HeadwaterError | None = None
    # The quality of a flow without streaming batches; its terminal record has it, once.
    data_quality: dict[str, Any] = field(default_factory=dict)

    def add_batch(
        self,
        *,
        input_rows: int,
        output_rows: int,
        dropped_rows: int,
        version: int | None,
        quarantined_rows: int = 0,
    ) -> None:
        """Add the numbers of one batch."""
        self.batches += 1
        self.input_rows += input_rows
        self.output_rows += output_rows
        self.dropped_rows += dropped_rows
        self.quarantined_rows += quarantined_rows
        self.version = version if version is not None else self.version
