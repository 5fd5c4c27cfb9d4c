"""Settles simple events on the driver: usually most of a batch.

An event is simple if it is the only one of its key in the batch, nothing is remembered of the key, and it is newer than the
target's row. Spark decides all others, and all types that Arrow compares in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from headwater_spark.auto_cdc.change_columns import DELETE, END_AT, SEQUENCE, START_AT, ChangeColumns
from headwater_spark.auto_cdc.change_events import ROW
from headwater_spark.auto_cdc.on_driver.events import arrow_can_reduce
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.rows import arrow_form, is_atomic
from headwater_spark.auto_cdc.side_table import REMOVED


@dataclass(frozen=True)
class Settled:
    """What is settled of a batch, as Arrow. ``changes``: of the target's rows; ``undecided``: the remaining events."""

    changes: Any
    undecided: Any


def settle_history(
    events: Any, columns: ChangeColumns, matches: MatchingRows, remembered: Any, schema: StructType
) -> Settled | None:
    """Settle a type 2 batch: a key's open row ends where its one new event differs, or deletes.

    Args:
        events: Arrow rows, one per key and sequence.
        matches: the target's rows about their keys.
        remembered: the side table's rows about their keys, None where there are none.
        schema: the target's.
    """
    if not arrow_can_reduce(columns) or columns.by_column or not _are_atomic(schema, columns.tracked):
        return None
    import pyarrow as pa
    from pyarrow import compute

    rows, keys = _in_form(matches.rows, schema), list(columns.keys)
    open_rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    is_open = compute.is_null(rows[END_AT])
    open_counts = _grouped(open_rows.filter(is_open), keys, [("row", "min"), ("row", "count")])
    ended = _grouped(rows.filter(compute.invert(is_open)), keys, [(END_AT, "max")])
    joined = _joined(
        _numbered(events, keys), [_grouped(events, keys, [(SEQUENCE, "count")]), open_counts, ended]
    )
    joined = _with_remembered(joined, keys, remembered)
    events = events.take(joined["n"])
    at, deletes = events[SEQUENCE].cast(rows.schema.field(START_AT).type), events[DELETE]
    alone = compute.and_(compute.equal(joined[f"{SEQUENCE}_count"], 1), compute.invert(joined["remembered"]))
    old = rows.take(joined["row_min"])
    last_end = joined[f"{END_AT}_max"]
    fits = _all(
        alone,
        compute.equal(joined["row_count"], 1),
        compute.less(old[START_AT], at),
        _or_null(compute.less_equal(last_end, old[START_AT]), last_end),
    )
    new = _rows_of(events, columns, schema)
    closes = _all(fits, compute.or_(deletes, _differ(new, old, columns.tracked)))
    begins = _all(alone, compute.is_null(joined["row_count"]), compute.invert(deletes), _or_null(compute.less(last_end, at), last_end))  # fmt: skip
    opens = compute.or_(begins, _all(closes, compute.invert(deletes)))
    closed = _with(old, END_AT, at).filter(closes)
    opened = _with(new, START_AT, at).filter(opens)
    return Settled(
        _marked(pa.concat_tables([closed, opened]), [False] * (closed.num_rows + opened.num_rows)),
        events.filter(compute.invert(compute.or_(closes, begins))),
    )


def settle_latest(
    live: Any, columns: ChangeColumns, matches: MatchingRows, tie: str, schema: StructType
) -> Settled | None:
    """Settle a type 1 batch: events of keys that the target does not have, or has with another sequence.

    Args:
        live: Arrow rows, one per key; ``tie`` is the column that says whether a remembered event is as new.
    """
    column = columns.sequence_column
    if not arrow_can_reduce(columns) or (column is not None and column not in schema.names):
        return None
    import pyarrow as pa
    from pyarrow import compute

    rows, keys = _in_form(matches.rows, schema), list(columns.keys)
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    joined = _joined(_numbered(live, keys), [_grouped(numbered, keys, [("row", "min"), ("row", "count")])])
    live = live.take(joined["n"])
    deletes = live[DELETE]
    old = rows.take(joined["row_min"])
    absent, one = (
        compute.is_null(joined["row_count"]),
        compute.fill_null(compute.equal(joined["row_count"], 1), False),
    )
    if column is None:
        certain = newer = _all(one, compute.invert(live[tie]))
    else:
        at = live[SEQUENCE].cast(rows.schema.field(column).type)
        certain = _all(one, compute.not_equal(at, old[column]))
        newer = _all(certain, compute.greater(at, old[column]))
    upserts = _all(compute.or_(absent, newer), compute.invert(deletes))
    is_deleted = _all(newer, deletes)
    written, deleted = _rows_of(live, columns, schema).filter(upserts), old.filter(is_deleted)
    return Settled(
        _marked(pa.concat_tables([written, deleted]), [False] * written.num_rows + [True] * deleted.num_rows),
        live.filter(compute.invert(compute.or_(absent, certain))),
    )


def in_form(changes: Any, schema: StructType) -> Any:
    """Changes in the form of ``Settled.changes``: the target's columns, and ``__hw_removed``."""
    return _in_form(changes, schema).append_column(REMOVED, changes[REMOVED])


def _are_atomic(schema: StructType, names: Sequence[str]) -> bool:
    return all(name in schema.names and is_atomic(schema[name].dataType) for name in names)


def _in_form(rows: Any, schema: StructType) -> Any:
    form = arrow_form(schema)
    return rows.select(form.names).cast(form)


def _numbered(rows: Any, names: Sequence[str]) -> Any:
    import pyarrow as pa

    return rows.select(list(names)).append_column("n", pa.array(range(rows.num_rows), pa.int64()))


def _grouped(rows: Any, keys: list[str], aggregates: list[tuple[str, str]]) -> Any:
    return (
        rows.select([*keys, *dict.fromkeys(name for name, _ in aggregates)])
        .group_by(keys)
        .aggregate(aggregates)
    )


def _joined(numbered: Any, tables: Sequence[Any]) -> Any:
    """Each numbered row with the columns that ``tables`` have of its key."""
    import pyarrow as pa

    keys = numbered.column_names[:-1]
    for table in tables:
        form = pa.schema(
            [numbered.schema.field(n) if n in keys else table.schema.field(n) for n in table.column_names]
        )
        numbered = numbered.join(table.cast(form), keys, join_type="left outer")
    return numbered.combine_chunks()


def _with_remembered(joined: Any, keys: list[str], remembered: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if remembered is None:
        return joined.append_column("remembered", pa.array([False] * joined.num_rows, pa.bool_()))
    keys_remembered = remembered.select(keys).group_by(keys).aggregate([])
    keys_remembered = keys_remembered.append_column(
        "known", pa.array([True] * keys_remembered.num_rows, pa.bool_())
    )
    form = pa.schema([*(joined.schema.field(key) for key in keys), keys_remembered.schema.field("known")])
    matched = joined.join(keys_remembered.cast(form), keys, join_type="left outer").combine_chunks()
    return matched.drop_columns(["known"]).append_column("remembered", compute.is_valid(matched["known"]))


def _rows_of(events: Any, columns: ChangeColumns, schema: StructType) -> Any:
    """The rows of events, as the target has them; open, where it has a history."""
    import pyarrow as pa

    struct = events[ROW].combine_chunks()
    values = {name: struct.field(name) for name in columns.names}
    form = arrow_form(schema)
    return pa.table(
        [values[n].cast(form.field(n).type) if n in values else pa.nulls(events.num_rows, form.field(n).type) for n in form.names],
        schema=form,
    )  # fmt: skip


def _differ(new: Any, old: Any, names: Sequence[str]) -> Any:
    """Whether rows differ in one of some columns; NULL equals NULL, and NaN equals NaN."""
    import pyarrow as pa
    from pyarrow import compute

    differs = pa.chunked_array([pa.array([False] * new.num_rows, pa.bool_())])
    for name in names:
        left, right = new[name], old[name]
        same = compute.fill_null(compute.equal(left, right), False)
        same = compute.or_(same, compute.and_(compute.is_null(left), compute.is_null(right)))
        if pa.types.is_floating(left.type):
            both = compute.and_(compute.is_nan(left), compute.is_nan(right))
            same = compute.or_(same, compute.fill_null(both, False))
        differs = compute.or_(differs, compute.invert(same))
    return differs


def _all(*conditions: Any) -> Any:
    """Whether all are true; NULL counts as false."""
    from pyarrow import compute

    result = conditions[0]
    for condition in conditions[1:]:
        result = compute.and_kleene(result, condition)
    return compute.fill_null(result, False)


def _or_null(condition: Any, value: Any) -> Any:
    from pyarrow import compute

    return compute.or_kleene(compute.is_null(value), condition)


def _with(rows: Any, name: str, values: Any) -> Any:
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)


def _marked(rows: Any, removed: list[bool]) -> Any:
    import pyarrow as pa

    return rows.append_column(REMOVED, pa.array(removed, pa.bool_()))
