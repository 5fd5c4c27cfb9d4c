"""AUTO CDC from snapshots: a streaming table that follows whole states of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headwater.declarations.auto_cdc import columns_given, history_kept, invalid
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.flow import Flow, FlowKind
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater.definitions.source_location import SourceLocation, caller_location
from headwater.graph.registry import Registry, active_registry


@checked_arguments
def create_auto_cdc_from_snapshot_flow(
    target: str,
    source: Any = None,
    keys: Iterable[Any] = (),
    stored_as_scd_type: str | int = 1,
    track_history_column_list: Iterable[Any] | None = None,
    track_history_except_column_list: Iterable[Any] | None = None,
    name: str | None = None,
    once: bool = False,
    *,
    snapshot_and_version: Any = None,
    flow_name: str | None = None,
) -> None:
    """Have a streaming table follow snapshots of a source: new keys are inserted, changed rows updated, missing ones deleted.

    Args:
        target: a table of ``dp.create_streaming_table``, which no other flow may write to.
        source: the name of a dataset or table (each update compares it with the target; in a history the time of the
            update is the version), or a function that takes the latest version that was applied (None at first) and
            gives the next ``(DataFrame, version)``, or None when there is none. It is called until it gives None.
        keys: the columns that identify a row.
        stored_as_scd_type: 1 keeps the rows of the latest snapshot; 2 their history, versions in ``__START_AT``
            and ``__END_AT``.
        track_history_column_list: the columns whose change begins a new row of history; else all but those of
            ``track_history_except_column_list``.
        name: the flow's name; the target's if left out (``flow_name`` is its older spelling).
        once: stop after the first update that has a snapshot, until a full refresh.
        snapshot_and_version: an older spelling of ``source``; also one ``(DataFrame, version)``.

    Versions are numbers, texts, dates, times or decimals, all of one type, ascending.

    Raises:
        InvalidChangeFlow: arguments that exclude each other.
    """
    registry = active_registry()
    if registry is None:
        return
    where = caller_location()
    if (source is None) == (snapshot_and_version is None):
        raise invalid(
            "snapshots come from source or from snapshot_and_version", where, "Give one of the two.",
        )  # fmt: skip
    changes = ChangeFlow(
        "", columns_given(keys, "keys", where) or (), None, history=history_kept(stored_as_scd_type, where),
        tracked_columns=columns_given(track_history_column_list, "track_history_column_list", where),
        untracked_columns=columns_given(track_history_except_column_list, "track_history_except_column_list", where),
    )  # fmt: skip
    snapshots = _snapshots(changes, source if source is not None else snapshot_and_version, where)
    flow = Flow(
        name or flow_name or target, registry.canonical(target, where), _reading(registry, snapshots), where, once,
        kind=FlowKind.SNAPSHOTS, snapshots=snapshots,
    )  # fmt: skip
    registry.add_flow(flow)


# The legacy name.
apply_changes_from_snapshot = create_auto_cdc_from_snapshot_flow


def _snapshots(changes: ChangeFlow, source: Any, where: SourceLocation | None) -> SnapshotFlow:
    if isinstance(source, str) and source.strip():
        return SnapshotFlow(changes, source=source)
    if isinstance(source, tuple) and len(source) == 2:
        return SnapshotFlow(changes, given=source)
    if callable(source):
        return SnapshotFlow(changes, following=source)
    raise invalid(
        f"snapshots come from the name of a table or view, or from a function, not from {type(source).__name__}", where,
        'Write source="users", or give a function of the latest version that returns (DataFrame, version) or None.',
    )  # fmt: skip


def _reading(registry: Registry, snapshots: SnapshotFlow) -> Callable[[], Any]:
    """A function for the rows of a snapshot that is read directly; a user's function is called by the engine."""

    def read() -> Any:
        assert registry.reader is not None
        if snapshots.source is not None:
            return registry.reader.read_dataset(snapshots.source)
        return snapshots.given[0] if snapshots.given is not None else None

    return read
