"""The events of a small batch on the driver: facts about the batch, and the events that need no reduction.

Arrow handles only values that it compares as Spark does: whole numbers, dates, times, and texts by their bytes. Spark handles
all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.types import DataType

from headwater_spark.auto_cdc.change_columns import DELETE, SEQUENCE, ChangeColumns
from headwater_spark.auto_cdc.on_driver.rows import is_text

# Arrow orders values of these types as Spark does.
_ORDERED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.TimestampType)


def is_ordered(kind: DataType) -> bool:
    """Whether Arrow orders values of a type as Spark does."""
    return isinstance(kind, _ORDERED)


def is_comparable(kind: DataType) -> bool:
    """Whether values of a type are equal for Arrow exactly where they are for Spark."""
    return is_ordered(kind) or is_text(kind)


def arrow_can_reduce(columns: ChangeColumns) -> bool:
    """Whether Arrow can compare a flow's keys and order its events."""
    keys = (columns.type_of(key) for key in columns.keys)
    return columns.truncate is None and is_ordered(columns.sequence_type) and all(map(is_comparable, keys))


def split_repeated(events: Any, identity: Sequence[str]) -> tuple[Any, Any]:
    """Events that are alone under their identity, and the others. Arrow rows."""
    import pyarrow as pa
    from pyarrow import compute

    numbered = _by_number(events, identity)
    groups = numbered.group_by(numbered.column_names[:-1]).aggregate([("n", "min"), ("n", "count")])
    alone = groups.filter(compute.equal(groups["n_count"], 1))["n_min"]
    if len(alone) == events.num_rows:
        return events, events.slice(0, 0)
    is_alone = compute.is_in(pa.array(range(events.num_rows), pa.int64()), alone.combine_chunks())
    return events.filter(is_alone), events.filter(compute.invert(is_alone))


def split_by_keys(events: Any, keys: Sequence[str], rows: Any) -> tuple[Any, Any]:
    """Events whose keys are not among ``rows``, and the others. Arrow rows, both with the columns ``keys``."""
    import pyarrow as pa
    from pyarrow import compute

    numbered = _by_number(events, keys)
    names = numbered.column_names[:-1]
    known = rows.select(list(keys)).rename_columns(names).cast(numbered.select(names).schema)
    new = numbered.join(known, names, join_type="left anti")["n"]
    is_new = compute.is_in(pa.array(range(events.num_rows), pa.int64()), new.combine_chunks())
    return events.filter(is_new), events.filter(compute.invert(is_new))


def tied(events: Any, identity: Sequence[str]) -> int:
    """How many of the events have the same identity as another one before them. Arrow rows."""
    if events.num_rows == 0:
        return 0
    return int(
        events.num_rows - events.select(list(identity)).group_by(list(identity)).aggregate([]).num_rows
    )


def facts_of(events: Any, received: int, ties: int, columns: ChangeColumns) -> Mapping[str, Any]:
    """The results of Spark's aggregates over the events, in the same form."""
    from pyarrow import compute

    nulls = [events[key].null_count for key in columns.keys]
    facts: dict[str, Any] = {
        "no_sequence": events[SEQUENCE].null_count > 0,
        "no_key": any(nulls),
        "received": received,
        "ties": ties,
        "remaining": events.num_rows,
        "deletes": compute.sum(events[DELETE]).as_py() or 0,
        "first_sequence": _encoded(compute.min(events[SEQUENCE])),
        "cleared_at": None,
    }
    for number, key in enumerate(columns.keys):
        kind = columns.type_of(key)
        if is_ordered(kind) or is_text(kind):
            low, high = compute.min_max(events[key]).values()
            facts |= {f"low{number}": _encoded(low), f"high{number}": _encoded(high)}
    return facts


def _encoded(value: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(value.type):
        return value.cast(pa.timestamp("us", value.type.tz)).cast(pa.int64()).as_py()
    return value.cast(pa.string()).as_py()


def _by_number(rows: Any, names: Sequence[str]) -> Any:
    """Some columns under new names, and the number of each row."""
    import pyarrow as pa

    chosen = rows.select(list(names)).rename_columns([f"k{i}" for i in range(len(names))])
    return chosen.append_column("n", pa.array(range(rows.num_rows), pa.int64()))
