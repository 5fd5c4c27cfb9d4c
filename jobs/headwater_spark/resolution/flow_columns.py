"""The columns of a flow as its dataset is analysed; several change flows into one target must agree."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater_spark.auto_cdc.change_columns import ChangeColumns, change_columns
from headwater_spark.auto_cdc.shared_columns import united
from headwater_spark.resolution.snapshot_calls import FlowCalls, first_snapshot


def analysed_frames(calls: FlowCalls, dataset: Dataset) -> list[tuple[Flow, DataFrame]]:
    """The frames of a dataset's flows; their arguments of AUTO CDC, if any, are checked against each other and recorded.

    Raises:
        InvalidChangeFlow: the arguments do not fit the columns, or differ from those of another flow of the target.
        Whatever evaluating the flows raises.
    """
    frames = [(flow, _analysed_frame(calls, flow, dataset)) for flow in calls.flows_of(dataset)]
    names = [flow.name for flow, _ in frames if flow.name in calls.changes]
    calls.changes.update(united({name: calls.changes[name] for name in names}))
    return frames


def _analysed_frame(calls: FlowCalls, flow: Flow, dataset: Dataset) -> DataFrame:
    changes = flow.changes
    if flow.snapshots is not None:
        frame, changes = first_snapshot(calls, flow, dataset)
    else:
        frame = calls.evaluate(flow)
    if changes is None:
        return frame
    if changes.hydrates and frame.isStreaming:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} takes changes, so its own query fills it once, from a batch, and this one is a stream.",
            where=flow.location,
            remedy="Read with spark.read or dp.read; or give the query to a view, and that to dp.create_auto_cdc_flow under "
            "a name of its own.",
        )
    columns = change_columns(changes, frame, flow.location, dataset.partition_columns)
    for other in calls.flows_of(dataset):
        if other.name in calls.changes:
            _check_alike(flow, columns, other, calls.changes[other.name])
    calls.changes[flow.name] = columns
    return frame


def _check_alike(flow: Flow, columns: ChangeColumns, other: Flow, other_columns: ChangeColumns) -> None:
    # What each flow leaves as it was is only known column by column, and a history has whole rows.
    apart = not columns.history and not (flow.changes and flow.changes.hydrates)
    apart = apart and not (other.changes and other.changes.hydrates)
    mine_of, theirs_of = _parts(columns, other_columns), _parts(other_columns, columns)
    for part, mine, theirs in zip(_PARTS, mine_of, theirs_of, strict=True):
        if mine != theirs and not (apart and part == "columns"):
            raise InvalidChangeFlow(
                f"AUTO CDC: {flow.name!r} and {other.name!r} write to {flow.target!r}, and differ in {part}: {mine} and {theirs}.",
                where=flow.location,
                remedy="Give them the same; a column that one of them does not have can be selected as NULL."
                if part == "columns"
                else "Give them the same.",
            )


_PARTS = (
    "keys",
    "columns",
    "the type of sequence_by",
    "stored_as_scd_type",
    "tracked columns",
    "ignored nulls",
    "columns_to_update (given or not)",
)


def _parts(columns: ChangeColumns, other: ChangeColumns) -> tuple[object, ...]:
    def names(columns: tuple[str, ...] | list[str]) -> list[str]:
        return sorted(name.lower() for name in columns)

    return (
        names(columns.keys),
        names(columns.names),
        columns.sequence_type.simpleString()
        + ("" if columns.system_type is None else f" (system: {columns.system_type.simpleString()})"),
        columns.scd_type,
        names(columns.tracked),
        # Of the columns that both have.
        names([name for name in columns.ignored if name.lower() in names(other.names)]),
        columns.selected is not None,
    )
