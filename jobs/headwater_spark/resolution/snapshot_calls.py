"""Snapshots from users' functions: called with the latest version, and their results checked."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.layout import change_memory
from headwater.checkpoints.snapshot_versions import SnapshotPosition, SnapshotVersions, newest_version_in
from headwater.definitions.change_conditions import InvalidChangeFlow, SnapshotOutOfOrder
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import table_exists
from headwater.errors import NotADataFrame
from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_columns import END_AT, START_AT, ChangeColumns
from headwater_spark.facade.pipeline_session import PipelineSession
from headwater_spark.plans.schemas import plain_schema

# A datetime is also a date, so it comes first.
_TYPES: tuple[tuple[type, DataType], ...] = (
    (datetime, TimestampType()), (date, DateType()), (int, LongType()), (float, DoubleType()), (str, StringType()),
    (Decimal, DecimalType(38, 18)),
)  # fmt: skip


class FlowCalls(Protocol):
    """What calls the functions of a pipeline's flows: an ``Evaluation``."""

    session: PipelineSession
    state_folder: Place
    changes: dict[str, ChangeColumns]

    def flows_of(self, dataset: Dataset) -> list[Flow]:
        """The flows into a dataset."""

    def calling(self, flow: Flow, *, actions: bool = False) -> AbstractContextManager[None]:
        """Record inside the block what a flow's function reads, and name what it raises."""

    def evaluate(self, flow: Flow) -> DataFrame:
        """The result of a flow's function."""

    def table_path(self, dataset: Dataset) -> Place:
        """The folder of a dataset's Delta table."""


@dataclass(frozen=True)
class Snapshot:
    """A state of the source and its version."""

    frame: DataFrame
    version: Any

    @property
    def kind(self) -> DataType:
        """The type of the version, as the target has it."""
        return next(kind for python, kind in _TYPES if isinstance(self.version, python))

    @property
    def literal(self) -> Column:
        """The version as a column."""
        return F.lit(self.version).cast(self.kind)


def snapshots_file(calls: FlowCalls, flow: Flow, application: str) -> SnapshotVersions:
    """The record of the versions that a flow has applied."""
    return SnapshotVersions(change_memory(calls.state_folder, flow.target) / "snapshots.json", application)


def next_snapshot(calls: FlowCalls, flow: Flow, position: SnapshotPosition) -> Snapshot | None:
    """The snapshot after a position, None where there is none yet.

    Raises:
        SnapshotOutOfOrder: its version is not above the last one.
        InvalidChangeFlow: it is neither (DataFrame, version) nor None.
        Whatever the user's function raises, named as that of any flow.
    """
    assert flow.snapshots is not None
    latest = position.version
    if flow.snapshots.source is not None:
        now = datetime.now(UTC)
        # A clock that was set back must not reverse the order.
        after = latest is not None and latest >= now
        return Snapshot(calls.evaluate(flow), _next_moment(latest) if after else now)
    if flow.snapshots.given is not None:
        if flow.snapshots.given[1] == latest:
            return None
        snapshot = _snapshot(flow, flow.snapshots.given)
    else:
        snapshot = requested_snapshot(calls, flow, latest)
    if snapshot is not None and latest is not None:
        _check_order(flow, snapshot, latest)
    return snapshot


def requested_snapshot(calls: FlowCalls, flow: Flow, latest: Any) -> Snapshot | None:
    """The result of the flow's function for ``latest``. It may run queries to find the next snapshot."""
    assert flow.snapshots is not None
    assert flow.snapshots.following is not None
    with calls.calling(flow, actions=True):
        answer = flow.snapshots.following(latest)
    return _snapshot(flow, answer)


def first_snapshot(calls: FlowCalls, flow: Flow, dataset: Dataset) -> tuple[DataFrame, ChangeFlow]:
    """A frame with the columns of a flow's snapshots, and the flow's arguments with the type of its version.

    Where a function has no snapshot to give now, the columns are those of the table, or of the declaration.

    Raises:
        InvalidChangeFlow: neither is there, so the columns can't be known.
    """
    snapshots = flow.snapshots
    assert snapshots is not None
    if snapshots.source is not None:
        return calls.evaluate(flow), replace(snapshots.changes, sequence_by=_nothing(TimestampType()))
    if snapshots.given is not None:
        snapshot = _snapshot(flow, (calls.evaluate(flow), snapshots.given[1]))
    else:
        snapshot = requested_snapshot(calls, flow, _latest(calls, flow, dataset))
    if snapshot is not None:
        return snapshot.frame, replace(snapshots.changes, sequence_by=_nothing(snapshot.kind))
    schema = plain_schema(dataset.schema, dataset.location) or _stored(calls, dataset)
    if schema is None:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.name!r} has no snapshot yet, and the columns of {dataset.name!r} can't be known without one.",
            where=flow.location,
            remedy=f'Give them: dp.create_streaming_table("{dataset.name}", schema="id INT, ...").',
        )
    ends = {field.name: field.dataType for field in schema.fields if field.name in (START_AT, END_AT)}
    fields = [field for field in schema.fields if field.name not in ends]
    frame = calls.session.createDataFrame([], StructType(fields))
    return frame, replace(snapshots.changes, sequence_by=_nothing(ends.get(START_AT, LongType())))


def _latest(calls: FlowCalls, flow: Flow, dataset: Dataset) -> Any:
    """The last recorded version, of any epoch: enough to learn the columns.

    Where the record is damaged, the table's log does: the start of this one flow makes the record good, or is refused.
    """
    try:
        position = snapshots_file(calls, flow, "").read()
    except FlowStateDamaged:
        return newest_version_in(calls.table_path(dataset))
    return position.version if position is not None else None


def _stored(calls: FlowCalls, dataset: Dataset) -> StructType | None:
    path = calls.table_path(dataset)
    return calls.session.read.load(str(path), format="delta").schema if table_exists(path) else None


def _snapshot(flow: Flow, answer: Any) -> Snapshot | None:
    if answer is None or (isinstance(answer, tuple) and answer == (None, None)):
        return None
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], DataFrame):
        raise NotADataFrame(
            f"The snapshot of {flow.name!r} is {type(answer).__name__}, not (DataFrame, version) or None.",
            where=flow.location,
            remedy="Return (df, version), or None where there is no snapshot after the latest version.",
        )
    frame, version = answer
    if frame.isStreaming:
        raise NotADataFrame(
            f"The snapshot of {flow.name!r} is a stream; a snapshot is a state as a whole.",
            where=flow.location,
            remedy="Read it with spark.read or dp.read.",
        )
    if isinstance(version, bool) or not isinstance(version, tuple(python for python, _ in _TYPES)):
        raise InvalidChangeFlow(
            f"AUTO CDC: the version of a snapshot of {flow.name!r} is {type(version).__name__}.",
            where=flow.location,
            remedy="Give a number, a text, a date or a time; later snapshots have greater ones.",
        )
    if isinstance(version, datetime) and version.tzinfo is None:
        version = version.astimezone(UTC)
    return Snapshot(frame, version)


def _check_order(flow: Flow, snapshot: Snapshot, latest: Any) -> None:
    version = snapshot.version
    try:
        ascends = version > latest and snapshot.kind == Snapshot(snapshot.frame, latest).kind
    except TypeError:
        ascends = False
    if not ascends:
        raise SnapshotOutOfOrder(
            f"{flow.name!r} got a snapshot of version {version!r} after {latest!r}; nothing of it was written.",
            where=flow.location,
            remedy="Return the snapshots in the order of their versions, all of one type, each greater than the latest "
            f"version that the function is given. To start over: headwater run PIPELINE_DIR --full-refresh {flow.target}",
        )


def _next_moment(latest: datetime) -> datetime:
    return latest + timedelta(microseconds=1)


def _nothing(kind: DataType) -> Column:
    return F.lit(None).cast(kind)
