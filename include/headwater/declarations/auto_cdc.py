"""AUTO CDC: change events merged into a streaming table by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.declarations.arguments import refuse, text_map
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.flow import Flow, FlowKind
from headwater.definitions.source_location import SourceLocation, caller_location
from headwater.graph.registry import Registry, active_registry

# The fields of ChangeFlow that lists of columns go to.
_LISTS = {
    "column_list": "columns", "except_column_list": "except_columns",
    "ignore_null_updates_column_list": "ignore_nulls_columns",
    "ignore_null_updates_except_column_list": "ignore_nulls_except",
    "track_history_column_list": "tracked_columns", "track_history_except_column_list": "untracked_columns",
}  # fmt: skip


@checked_arguments
def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Iterable[Any],
    sequence_by: Any,
    ignore_null_updates: bool = False,
    apply_as_deletes: Any = None,
    apply_as_truncates: Any = None,
    column_list: Iterable[Any] | None = None,
    except_column_list: Iterable[Any] | None = None,
    stored_as_scd_type: str | int = 1,
    track_history_column_list: Iterable[Any] | None = None,
    track_history_except_column_list: Iterable[Any] | None = None,
    name: str | None = None,
    once: bool = False,
    *,
    ignore_null_updates_column_list: Iterable[Any] | None = None,
    ignore_null_updates_except_column_list: Iterable[Any] | None = None,
    columns_to_update: Any = None,
    system_sequence_by: Any = None,
    where: Any = None,
    flow_name: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
) -> None:
    """Merge a stream of change events into a streaming table; the result does not depend on their order of arrival.

    Args:
        target: a table of ``dp.create_streaming_table``. Several named flows may write to one target.
        source: the dataset or table that brings the events; it is read as a stream (as a batch with ``once``).
        keys: the columns that identify the row of an event.
        sequence_by: a column, expression or struct that orders the events of a key. It may not be NULL.
        ignore_null_updates: a NULL leaves the value as it was; with the two lists, in some columns only.
        columns_to_update: a column of the event with the names of the columns that it sets, to NULL or not. The others
            keep their values; no list means every column.
        apply_as_deletes: a condition on the event; so is ``apply_as_truncates`` (type 1 only), which empties the table
            of what was written before.
        column_list: the columns that the target keeps, or else all but ``except_column_list``.
        stored_as_scd_type: 1 keeps the last row of each key, 2 its history in ``__START_AT`` and ``__END_AT``; ``"bitemporal"`` keeps
            the history as it was known at each time, in ``__SYSTEM_START_AT`` and ``__SYSTEM_END_AT`` beside them.
        system_sequence_by: of a bitemporal history, since when an event is known. It may not be NULL.
        track_history_column_list: the columns whose change begins a new row of history; else all but those of
            ``track_history_except_column_list``.
        name: the flow's name; the target's if left out (``flow_name`` is its older spelling).
        once: the source is read once, as a batch: the initial load of the table.
        spark_conf: Spark settings for this flow's query and merges alone.

    Semantics are Lakeflow's; where two events of a key have the same sequence a delete wins, then the greater row.

    Raises:
        InvalidChangeFlow: arguments that exclude each other.
    """
    registry = active_registry()
    if registry is None:
        return
    place = caller_location()
    refuse("dp.create_auto_cdc_flow", place, where=where)
    lists = _lists(
        place, column_list=column_list, except_column_list=except_column_list,
        ignore_null_updates_column_list=ignore_null_updates_column_list,
        ignore_null_updates_except_column_list=ignore_null_updates_except_column_list,
        track_history_column_list=track_history_column_list,
        track_history_except_column_list=track_history_except_column_list,
    )  # fmt: skip
    changes = ChangeFlow(
        _text(source, "source", place), columns_given(keys, "keys", place) or (), sequence_by, apply_as_deletes,
        apply_as_truncates, ignore_nulls=bool(ignore_null_updates), columns_to_update=columns_to_update,
        history=history_kept(
            stored_as_scd_type, place, truncates=apply_as_truncates is not None, system=system_sequence_by is not None
        ), system_sequence_by=system_sequence_by, **lists,
    )  # fmt: skip
    registry.add_flow(Flow(
        name or flow_name or target, registry.canonical(target, place), _reading(registry, source, batch=once),
        place, once, text_map(spark_conf, "spark_conf", place), kind=FlowKind.CHANGES, changes=changes,
    ))  # fmt: skip


# The legacy name.
apply_changes = create_auto_cdc_flow


def _reading(registry: Registry, source: str, *, batch: bool) -> Callable[[], Any]:
    def read() -> Any:
        assert registry.reader is not None
        return registry.reader.read_dataset(source) if batch else registry.reader.read_dataset_stream(source)

    return read


def history_kept(
    scd_type: str | int, where: SourceLocation | None, *, truncates: bool = False, system: bool | None = None
) -> bool:
    """Whether ``stored_as_scd_type`` keeps a history, of type 2 or bitemporal.

    Args:
        truncates: events may empty the target.
        system: whether events say since when they are known; None where they can't (snapshots).

    Raises:
        InvalidChangeFlow: another type, or one that does not fit the other arguments.
    """
    kind = str(scd_type).upper().removeprefix("SCD TYPE ").strip()
    if kind not in ("1", "2") and (kind != "BITEMPORAL" or system is None):
        types = "1 or 2" if system is None else '1, 2 or "bitemporal"'
        raise invalid(f"stored_as_scd_type={scd_type!r} is not a type that is kept", where, f"Say {types}.")
    if kind != "1" and truncates:
        problem = "apply_as_truncates needs type 1: a history is not emptied"
        raise invalid(problem, where, "Leave it out, or use type 1.")
    if (kind == "BITEMPORAL") != bool(system):
        problem = 'system_sequence_by and stored_as_scd_type="bitemporal" go together'
        raise invalid(
            problem, where, "Give both: since when an event is true, and since when it is known; or neither."
        )
    return kind != "1"


def columns_given(
    value: Iterable[Any] | None, argument: str, where: SourceLocation | None
) -> tuple[Any, ...] | None:
    """The columns as a tuple; None stays None. Raises InvalidChangeFlow where they are not columns."""
    if value is None:
        return None
    # One bare name is one column; a Spark column is not a list of columns either.
    if isinstance(value, str) or hasattr(value, "_jc"):
        return (value,)
    try:
        return tuple(value)
    except TypeError:
        raise invalid(f"{argument} takes columns", where, f'Write {argument}=["a", "b"].') from None


def _lists(where: SourceLocation | None, **arguments: Iterable[Any] | None) -> dict[str, Any]:
    return {_LISTS[name]: columns_given(value, name, where) for name, value in arguments.items()}


def _text(value: Any, argument: str, where: SourceLocation | None) -> str:
    if not isinstance(value, str) or not value.strip():
        raise invalid(f"{argument} takes the name of a dataset or table", where, 'Write source="changes".')
    return value


def invalid(problem: str, where: SourceLocation | None, remedy: str) -> InvalidChangeFlow:
    """The error of arguments that do not fit together."""
    return InvalidChangeFlow(f"AUTO CDC: {problem}.", where=where, remedy=remedy)
