"""One flow in an update, a backfill or a replay: everything that its run needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from headwater.checkpoints.conditions import NameTaken
from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.flow_role import FlowRole, flow_role
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.definitions.output_kind import OutputKind
from headwater.delta_log.table_history import readable_table_id, table_exists
from headwater.doctor import start_facts
from headwater.errors import HeadwaterError
from headwater.event_log.details import FlowStatus
from headwater.graph.manifest import FlowEntry
from headwater.quarantine.table import is_quarantine
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, flow_metadata
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.plans.schemas import stored_schema
from headwater_spark.quarantine.quarantine_table import QuarantineTable

_RENAMED = "__headwater_column"


@dataclass(frozen=True)
class FlowRun:
    """A flow, its dataset and its context. ``outcome`` collects the result."""

    context: UpdateContext
    dataset: Dataset
    flow: Flow
    outcome: FlowOutcome

    @classmethod
    def of(cls, context: UpdateContext, dataset: Dataset, flow: Flow) -> FlowRun:
        """The run of a flow outside an update: in a backfill or a replay."""
        return cls(context, dataset, flow, FlowOutcome(flow.name, dataset.name))

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.name

    @cached_property
    def entry(self) -> FlowEntry:
        """The flow in the manifest."""
        return self.context.pipeline.manifest.flow(self.flow.name)

    @cached_property
    def checkpoint(self) -> FlowCheckpoint:
        """The flow's checkpoint folder."""
        return self.context.checkpoint(self.dataset.name, self.flow.name)

    @cached_property
    def identity(self) -> FlowIdentity:
        """The names in the flow's commits; raises FlowStateDamaged."""
        return self.context.identity(self.dataset.name, self.flow.name)

    @property
    def mode(self) -> OutputMode:
        """How the flow's rows change those of its table."""
        return self.context.pipeline.evaluation.output_mode_of(self.flow)

    @property
    def is_view(self) -> bool:
        """Whether it fills a materialized view."""
        return self.context.pipeline.evaluation.kind_of(self.dataset) is DatasetKind.MATERIALIZED_VIEW

    @property
    def role(self) -> FlowRole:
        """As what it runs."""
        return flow_role(
            view=self.is_view,
            snapshots=self.flow.snapshots is not None,
            once=self.flow.once,
            changes=self.mode.kind is OutputKind.CHANGES,
        )

    @property
    def is_stream(self) -> bool:
        """Whether it runs as a streaming query."""
        return not (self.is_view or self.flow.once or self.flow.snapshots is not None)

    @cached_property
    def delta_table(self) -> Place | None:
        """The folder of the Delta table that the rows go to, None where they go elsewhere."""
        return self.context.delta_table(self.dataset)

    @property
    def table(self) -> Place:
        """The folder of the table; raises KeyError for a sink that has none."""
        return self.context.table_path(self.dataset)

    def destination_id(self) -> str | None:
        """The id of the place that rows go to, as checkpoints store it and checks compare it; None without a table (yet).

        Raises:
            SourceUnreachable: the table's log can't be read; the stored id must not be overwritten.
        """
        if self.delta_table is not None:
            return readable_table_id(self.delta_table)
        return start_facts.destination_id(self.context.pipeline.manifest.dataset(self.dataset.name), None)

    def quarantine(self, epoch: int) -> QuarantineTable | None:
        """The dataset's quarantine table as the flow writes to it; None where no rule quarantines.

        Raises:
            NameTaken: another table is there, which may belong to no dataset of the pipeline.
        """
        path = self.context.quarantine_path(self.dataset)
        if path is None:
            return None
        if table_exists(path) and not is_quarantine(path):
            raise NameTaken(
                f"Rows that the rules of {self.dataset.name!r} reject would go to a table that is not a quarantine: {path}",
                where=self.dataset.location,
                remedy="Rename or move one of the two tables: <table>_quarantine is reserved for the rules.",
            )
        rules = self.dataset.expectations
        return QuarantineTable(path, self.identity.flow, epoch, self.context.update_id, rules)

    def metadata(self, **more: Any) -> dict[str, Any]:
        """The user metadata of the flow's commits."""
        return flow_metadata(*self.identity.names, **more)

    def transaction(self, epoch: int, batch_id: int = 0, **more: Any) -> BatchTransaction:
        """The identity of a batch, with ``more`` in its metadata."""
        metadata = json.dumps(self.metadata(epoch=epoch, **more))
        return BatchTransaction(self.identity.application(epoch), batch_id, metadata)

    def settings(self, state: FlowState | None = None) -> AbstractContextManager[None]:
        """The flow's settings in its session, and those that its state was created with."""
        fixed = state.state_settings if state is not None else None
        return self.context.pipeline.evaluation.settings(self.flow, fixed)

    def rows(self, *, whole: bool = False) -> DataFrame:
        """The flow's query as Delta is to store it, without watermark metadata, which readers would inherit.

        Args:
            whole: all rows, even of a view that recomputes only a part of its table.
        """
        frame = self.context.pipeline.evaluation.evaluate(self.flow, whole=whole)
        for field, plain in zip(frame.schema.fields, stored_schema(frame.schema).fields, strict=True):
            if field.metadata != plain.metadata:
                frame = _with_metadata(frame, field.name, plain.metadata)
        return frame

    def record(self, status: FlowStatus, message: str, **details: object) -> None:
        """Record the flow's status."""
        self.context.flow_event(self.outcome, status, message, **details)  # type: ignore[arg-type]

    def emit(
        self,
        event_type: str,
        message: str,
        *,
        details: Mapping[str, Any],
        level: str = "INFO",
        batch_id: int | None = None,
        epoch: int | None = None,
        error: HeadwaterError | None = None,
        maturity: str = "STABLE",
    ) -> None:
        """Record an event of the flow."""
        self.context.events.emit(
            event_type, message, level=level, flow=self.name, dataset=self.dataset.name, batch_id=batch_id,
            epoch=epoch, details=details, error=error, maturity=maturity,
        )  # fmt: skip


def _with_metadata(frame: DataFrame, column: str, metadata: dict[str, Any]) -> DataFrame:
    # Spark's function takes a dot in the name for a field of a struct, and leaves a column of that name untouched when quoted.
    if "." not in column:
        return frame.withMetadata(column, metadata)
    renamed = frame.withColumnRenamed(column, _RENAMED).withMetadata(_RENAMED, metadata)
    return renamed.withColumnRenamed(_RENAMED, column)
