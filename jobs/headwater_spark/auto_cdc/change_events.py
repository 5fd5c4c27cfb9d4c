"""The events of a micro-batch in one form, reduced to those that can still matter, with facts about the whole batch.

Decision 0121.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from headwater.definitions.change_conditions import NullKey, NullSequence
from headwater.definitions.flow_settings import FAST_PATH
from headwater_spark.auto_cdc.change_columns import DELETE, OWN, SEQUENCE, SYSTEM, TRUNCATE, ChangeColumns
from headwater_spark.auto_cdc.key_range import KeyRange, range_facts
from headwater_spark.auto_cdc.literals import encoded, literal
from headwater_spark.auto_cdc.on_driver.events import arrow_can_reduce, facts_of, split_repeated, tied
from headwater_spark.auto_cdc.on_driver.rows import (
    Rows,
    cached,
    local_frame,
    local_if_small,
    on_driver,
)
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import orderable
from headwater_spark.plans.session_settings import session_settings

ROW, COUNT, SELECTED = f"{OWN}row", f"{OWN}count", f"{OWN}selected"
# The columns that an event sets, where it does not set them all: beside its row, in a history within it.
_SELECTED_FIELD = StructField(SELECTED, ArrayType(StringType()))
_NO_SEQUENCE, _NO_KEY, _TIES = f"{OWN}no_sequence", f"{OWN}no_key", f"{OWN}ties"
# Why no event is collected on the driver where the setting says so.
CLOSED = f"closed by {FAST_PATH}"


@dataclass(frozen=True)
class ChangeBatch:
    """The events of one micro-batch. ``events`` are cached, or on the driver.

    ``events`` has the keys, the sequence, whether it deletes, and the row (a struct of the target's columns).
    ``received`` counts them before the reduction, ``remaining`` after it. ``first_sequence`` and ``cleared_at`` (the last
    truncate) are literals. ``local`` has the events as Arrow if they are on the driver; else ``not_local`` says why not.
    ``ties``: how many events had the key and the sequence of another one; None where that is not counted.
    """

    columns: ChangeColumns
    events: DataFrame
    received: int
    remaining: int
    deletes: int
    key_range: KeyRange
    first_sequence: Column
    cleared_at: Column | None
    local: Any = None
    not_local: str = ""
    ties: int | None = None

    def with_events(self, events: Any) -> ChangeBatch:
        """The batch with some of its events: Arrow rows of ``local``. The counts stay."""
        frame = local_frame(self.events.sparkSession, events, self.events.schema)
        return replace(self, events=frame, local=events)

    def key_filter(self, table: str) -> Column:
        """A condition that all of ``table``'s rows about the batch's keys meet, so that files can be skipped."""
        return self.key_range.condition(table)


@contextmanager
def change_batch(
    batch: DataFrame, columns: ChangeColumns, where: object, *, fast_path: bool = True
) -> Iterator[ChangeBatch]:
    """Read a micro-batch's events once, and reduce them; caches are freed at the end of the block.

    Args:
        fast_path: whether a small batch may come to the driver.

    Raises:
        NullSequence, NullKey: an event can't be ordered, or is about no row; in this order.
    """

    def small(rows: DataFrame, count: int) -> Rows:
        return local_if_small(rows, count) if fast_path else Rows(rows, not_local=CLOSED)

    with ExitStack() as stack:
        # What has one partition or two has nothing to adapt, and each exchange would be a job of its own.
        with session_settings(batch.sparkSession, {"spark.sql.adaptive.enabled": "false"}):
            incoming = stack.enter_context(cached(_normal(batch, columns)))
            count = incoming.count()
        rows = small(incoming, count)
        alone = not columns.by_column and columns.system is None
        if rows.is_local and alone and arrow_can_reduce(columns):
            distinct, ties = _reduced_on_driver(rows, columns)
            yield _as_batch(distinct, facts_of(distinct.table, count, ties, columns), columns, where)
            return
        reduced = stack.enter_context(cached(_reduced(rows.frame, columns)))
        facts = reduced.agg(*_facts(columns)).first()
        assert facts is not None
        remaining = reduced.where(~F.col(TRUNCATE)).drop(TRUNCATE, _NO_SEQUENCE, _NO_KEY, _TIES, COUNT)
        yield _as_batch(small(remaining, facts["remaining"] or 0), facts, columns, where)


def _as_batch(events: Rows, facts: Any, columns: ChangeColumns, where: object) -> ChangeBatch:
    _refuse_nulls(facts, columns, where)
    kind = columns.sequence_type
    return ChangeBatch(
        columns,
        events.frame,
        facts["received"] or 0,
        facts["remaining"] or 0,
        facts["deletes"] or 0,
        KeyRange.of(columns, facts),
        literal(facts["first_sequence"], kind),
        literal(facts["cleared_at"], kind) if facts["cleared_at"] is not None else None,
        events.table,
        events.not_local,
        facts["ties"],
    )


def _reduced_on_driver(events: Rows, columns: ChangeColumns) -> tuple[Rows, int]:
    """Events on the driver, one of each key (and sequence, for a history), and how many ties there were."""
    import pyarrow as pa

    identity = [*columns.keys, SEQUENCE] if columns.history else list(columns.keys)
    alone, repeated = split_repeated(events.table, identity)
    if repeated.num_rows:
        several = local_frame(events.frame.sparkSession, repeated, events.frame.schema)
        winners = on_driver(_reduced(several, columns).select(*map(quoted, alone.column_names)))
        alone = pa.concat_tables([alone, winners.table.cast(alone.schema)])
    table = alone.drop_columns([TRUNCATE])
    reduced = Rows(local_frame(events.frame.sparkSession, table, events.frame.drop(TRUNCATE).schema), table)
    return reduced, tied(repeated, [*columns.keys, SEQUENCE])


def comparable(value: Column, kind: DataType) -> Column:
    """``value`` in a form that Spark can compare, whatever its type, with the same equality."""
    if orderable(kind):
        return value
    if isinstance(kind, StructType):
        parts = [comparable(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(kind, MapType) and orderable(kind.keyType) and orderable(kind.valueType):
        return F.array_sort(F.map_entries(value))
    return F.to_json(F.struct(value))


def fitted(value: Column, current: DataType, target: DataType) -> Column:
    """A value of the type ``current`` cast to ``target``: fields that its structs do not have are NULL."""
    if current.simpleString() == target.simpleString():
        return value.cast(target)
    if isinstance(current, StructType) and isinstance(target, StructType):
        fields = {field.name.lower(): field for field in current.fields}
        parts = [
            fitted(value.getField(field.name), field.dataType, f.dataType)
            if (field := fields.get(f.name.lower())) is not None
            else F.lit(None).cast(f.dataType)
            for f in target.fields
        ]
        named = [part.alias(f.name) for part, f in zip(parts, target.fields, strict=True)]
        return F.when(value.isNotNull(), F.struct(*named))
    if isinstance(current, ArrayType) and isinstance(target, ArrayType):
        old, new = current.elementType, target.elementType
        return F.transform(value, lambda element: fitted(element, old, new))
    if isinstance(current, MapType) and isinstance(target, MapType):
        before, after = current.valueType, target.valueType
        return F.transform_values(value, lambda _, inner: fitted(inner, before, after))
    return value.cast(target)


def row_of_table(schema: StructType, columns: ChangeColumns) -> Column:
    """A table's row in the form of an event's: NULL in columns that the table does not have yet."""
    kinds = {field.name.lower(): field.dataType for field in schema.fields}
    fields = [
        (
            fitted(F.col(quoted(f.name)), kinds[f.name.lower()], f.dataType)
            if f.name.lower() in kinds
            else F.lit(None).cast(f.dataType)
        ).alias(f.name)
        for f in columns.fields
    ]
    return F.struct(*fields, *all_columns_marker(columns))


def all_columns_marker(columns: ChangeColumns) -> list[Column]:
    """The field of a row that sets all columns, where rows list the columns that they set."""
    return [F.lit(None).cast(_SELECTED_FIELD.dataType).alias(SELECTED)] if columns.rows_name_columns else []


def row_type(columns: ChangeColumns) -> StructType:
    """The type of an event's row."""
    return StructType([*columns.fields, *([_SELECTED_FIELD] if columns.rows_name_columns else [])])


def flat(events: DataFrame, columns: ChangeColumns, also: tuple[str, ...] = ()) -> DataFrame:
    """Events with the columns of their rows side by side, as a merge that adds columns to its target needs them."""
    values = [F.col(quoted(ROW, name)).alias(name) for name in columns.values]
    own = [F.col(name) for name in events.columns if name.startswith(OWN) and name != ROW]
    return events.select(*columns.key_columns, *values, *also, *own)


def _normal(batch: DataFrame, columns: ChangeColumns) -> DataFrame:
    truncates = columns.truncate if columns.truncate is not None else F.lit(False)
    # A truncate has no key: all truncates form one group.
    keys = [F.when(~truncates, columns.stored_key(key)).alias(key) for key in columns.keys]
    brought = {field.name.lower(): field for field in batch.schema.fields}

    def value(field: StructField) -> Column:
        # Several flows may bring the columns of one target (shared_columns): NULL, and not set, in those of the others.
        own = brought.get(field.name.lower())
        if own is None:
            return F.lit(None).cast(field.dataType)
        return fitted(F.col(quoted(own.name)), own.dataType, field.dataType)

    values = [value(field).alias(field.name) for field in columns.fields]
    selected = [columns.selected.alias(SELECTED)] if columns.selected is not None else []
    return batch.select(
        *keys,
        columns.sequence.cast(columns.sequence_type).alias(SEQUENCE),
        *([] if columns.system is None else [columns.system.cast(columns.system_type).alias(SYSTEM)]),
        columns.delete.alias(DELETE),
        truncates.alias(TRUNCATE),
        F.struct(*values, *(selected if columns.rows_name_columns else [])).alias(ROW),
        *([] if columns.rows_name_columns else selected),
    )


def _reduced(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    keys = columns.key_columns
    no_key = ~F.col(TRUNCATE) & reduce(Column.__or__, (key.isNull() for key in keys))
    system = [] if columns.system is None else [F.col(SYSTEM)]
    no_sequence = reduce(Column.__or__, (one.isNull() for one in (F.col(SEQUENCE), *system)))
    counts = [
        F.count(F.lit(1)).alias(COUNT),
        F.max(no_sequence).alias(_NO_SEQUENCE),
        F.max(no_key).alias(_NO_KEY),
        _ties(columns).alias(_TIES),
    ]
    rank = F.struct(SEQUENCE, *system, DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(SEQUENCE, *system, DELETE, ROW), rank).alias("winner")
    if not columns.history and not columns.by_column:
        grouped = events.groupBy(*keys, TRUNCATE).agg(winner, *counts)
    elif columns.history:
        at = [F.col(SEQUENCE).alias("at"), *(one.alias("known") for one in system)]
        grouped = events.groupBy(*keys, TRUNCATE, *at).agg(winner, *counts).drop("at", "known")
    else:
        # Column by column, each event may still matter.
        uncounted = F.lit(None).cast("long")
        return events.withColumns(
            {COUNT: F.lit(1), _NO_SEQUENCE: F.col(SEQUENCE).isNull(), _NO_KEY: no_key, _TIES: uncounted}
        )
    return grouped.select(*keys, TRUNCATE, COUNT, _NO_SEQUENCE, _NO_KEY, _TIES, "winner.*")


def _ties(columns: ChangeColumns) -> Column:
    """How many events of a group have the sequence of another one; NULL where that can't be counted."""
    if columns.history:
        return F.count(F.lit(1)) - 1
    if "collate" in columns.sequence_type.simpleString():  # Spark has no sets of collated texts
        return F.lit(None).cast("long")
    return F.count(F.lit(1)) - F.size(F.collect_set(SEQUENCE))


def _facts(columns: ChangeColumns) -> list[Column]:
    is_event = ~F.col(TRUNCATE)
    return [
        F.max(_NO_SEQUENCE).alias("no_sequence"),
        F.max(_NO_KEY).alias("no_key"),
        F.sum(COUNT).alias("received"),
        F.sum(F.when(is_event, F.col(_TIES))).alias("ties"),
        F.count_if(is_event).alias("remaining"),
        F.count_if(is_event & F.col(DELETE)).alias("deletes"),
        encoded(F.min(F.when(is_event, F.col(SEQUENCE))), columns.sequence_type).alias("first_sequence"),
        encoded(F.max(F.when(F.col(TRUNCATE), F.col(SEQUENCE))), columns.sequence_type).alias("cleared_at"),
        *range_facts(columns),
    ]


def _refuse_nulls(facts: Any, columns: ChangeColumns, where: object) -> None:
    remedy = "Filter such events out before, or count them: @dp.expect_or_drop on a view that the flow reads."
    if facts["no_sequence"]:
        raise NullSequence(
            "A change event's sequence_by (or system_sequence_by) is NULL; nothing of its batch was written.",
            where=where,
            remedy=remedy,
        )
    if facts["no_key"]:
        raise NullKey(
            f"A change event's key is NULL{columns.or_lost}; nothing of its batch was written.",
            where=where,
            remedy=remedy,
        )
