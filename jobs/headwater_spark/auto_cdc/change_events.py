"""The events of a micro-batch in one form, reduced to what can still matter, and what is known of them as a whole.

Decision 0121.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from headwater.definitions.change_conditions import NullKey, NullSequence
from headwater.definitions.flow_settings import FAST_PATH
from headwater_spark.auto_cdc.change_columns import (
    DELETE,
    OWN,
    SEQUENCE,
    TRUNCATE,
    ChangeColumns,
    orderable,
    quoted,
)
from headwater_spark.auto_cdc.key_range import KeyRange, range_facts
from headwater_spark.auto_cdc.literals import encoded, literal
from headwater_spark.auto_cdc.on_driver.events import can_be_looked_at, facts_of, split_repeated, tied
from headwater_spark.auto_cdc.on_driver.rows import (
    Held,
    cached,
    local_frame,
    local_if_small,
    on_driver,
    setting,
)

ROW, COUNT, SELECTED = f"{OWN}row", f"{OWN}count", f"{OWN}selected"
# The columns that an event says something of, where it does not of all: beside its row, in a history within it.
_SAID = StructField(SELECTED, ArrayType(StringType()))
_NO_SEQUENCE, _NO_KEY, _TIES = f"{OWN}no_sequence", f"{OWN}no_key", f"{OWN}ties"
# Why no event comes to the driver where the setting says so.
CLOSED = f"closed by {FAST_PATH}"


@dataclass(frozen=True)
class ChangeBatch:
    """The events of one micro-batch. ``events`` are cached, or on the driver; ``received`` counts them before the reduction.

    ``events`` has the keys, the sequence, whether it deletes, and the row (a struct of the target's columns).
    ``first_sequence`` is a literal over the batch; ``cleared_at`` is its last truncate. ``local`` has the events as Arrow
    where they are on the driver; else ``not_local`` says why they are not. ``ties``: how many events had the key and the
    sequence of another one; None where that is not counted.
    """

    columns: ChangeColumns
    events: DataFrame
    received: int
    kept: int
    deletes: int
    key_range: KeyRange
    first_sequence: Column
    cleared_at: Column | None
    local: Any = None
    not_local: str = ""
    ties: int | None = None

    def only(self, events: Any) -> ChangeBatch:
        """The batch with some of its events: Arrow rows of ``local``. What was counted stays."""
        frame = local_frame(self.events.sparkSession, events, self.events.schema)
        return replace(self, events=frame, local=events)

    def prunes(self, table: str) -> Column:
        """A condition that all of ``table``'s rows about the batch's keys meet, for files to be skipped by."""
        return self.key_range.meets(table)


@contextmanager
def change_batch(
    batch: DataFrame, columns: ChangeColumns, where: object, *, fast_path: bool = True
) -> Iterator[ChangeBatch]:
    """Read a micro-batch's events once, and reduce them; what is cached is freed with the block.

    Args:
        fast_path: whether a small batch may come to the driver.

    Raises:
        NullSequence, NullKey: an event can't be ordered or is about no row; the first of the two is told first.
    """

    def small(rows: DataFrame, count: int) -> Held:
        return local_if_small(rows, count) if fast_path else Held(rows, not_local=CLOSED)

    with ExitStack() as kept:
        # What has one partition or two has nothing to adapt, and each exchange would be a job of its own.
        with setting(batch.sparkSession, "spark.sql.adaptive.enabled", "false"):
            read = kept.enter_context(cached(_normal(batch, columns)))
            count = read.count()
        held = small(read, count)
        if held.is_local and can_be_looked_at(columns) and not columns.by_column:
            events, ties = _reduced_here(held, columns)
            yield _told(events, facts_of(events.table, count, ties, columns), columns, where)
            return
        reduced = kept.enter_context(cached(_reduced(held.frame, columns)))
        found = reduced.agg(*_facts(columns)).first()
        assert found is not None
        left = reduced.where(~F.col(TRUNCATE)).drop(TRUNCATE, _NO_SEQUENCE, _NO_KEY, _TIES, COUNT)
        yield _told(small(left, found["kept"] or 0), found, columns, where)


def _told(held: Held, found: Any, columns: ChangeColumns, where: object) -> ChangeBatch:
    _refuse_nulls(found, where)
    at = columns.sequence_type
    return ChangeBatch(
        columns,
        held.frame,
        found["received"] or 0,
        found["kept"] or 0,
        found["deletes"] or 0,
        KeyRange.of(columns, found),
        literal(found["first_sequence"], at),
        literal(found["cleared_at"], at) if found["cleared_at"] is not None else None,
        held.table,
        held.not_local,
        found["ties"],
    )


def _reduced_here(read: Held, columns: ChangeColumns) -> tuple[Held, int]:
    """Events on the driver, one of each key (and sequence, for a history), and how many ties there were. Most events are
    alone, and need no comparison.
    """
    import pyarrow as pa

    identity = [*columns.keys, SEQUENCE] if columns.history else list(columns.keys)
    alone, repeated = split_repeated(read.table, identity)
    if repeated.num_rows:
        several = local_frame(read.frame.sparkSession, repeated, read.frame.schema)
        winners = on_driver(_reduced(several, columns).select(*map(quoted, alone.column_names)))
        alone = pa.concat_tables([alone, winners.table.cast(alone.schema)])
    table = alone.drop_columns([TRUNCATE])
    events = Held(local_frame(read.frame.sparkSession, table, read.frame.drop(TRUNCATE).schema), table)
    return events, tied(repeated, [*columns.keys, SEQUENCE])


def comparable(value: Column, kind: DataType) -> Column:
    """``value`` in a form that Spark can compare, whatever its type: equal where it is equal."""
    if orderable(kind):
        return value
    if isinstance(kind, StructType):
        parts = [comparable(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(kind, MapType) and orderable(kind.keyType) and orderable(kind.valueType):
        return F.array_sort(F.map_entries(value))
    return F.to_json(F.struct(value))


def fitted(value: Column, held: DataType, wanted: DataType) -> Column:
    """A value of the type ``held`` in another type that holds it: fields that its structs do not have are NULL."""
    if held.simpleString() == wanted.simpleString():
        return value.cast(wanted)
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        known = {field.name.lower(): field for field in held.fields}
        parts = [
            fitted(value.getField(own.name), own.dataType, f.dataType)
            if (own := known.get(f.name.lower())) is not None
            else F.lit(None).cast(f.dataType)
            for f in wanted.fields
        ]
        named = [part.alias(f.name) for part, f in zip(parts, wanted.fields, strict=True)]
        return F.when(value.isNotNull(), F.struct(*named))
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        old, new = held.elementType, wanted.elementType
        return F.transform(value, lambda element: fitted(element, old, new))
    if isinstance(held, MapType) and isinstance(wanted, MapType):
        before, after = held.valueType, wanted.valueType
        return F.transform_values(value, lambda _, inner: fitted(inner, before, after))
    return value.cast(wanted)


def row_held(held: StructType, columns: ChangeColumns) -> Column:
    """A table's row as today's events have theirs: NULL in columns that the table is about to gain."""
    kinds = {field.name.lower(): field.dataType for field in held.fields}
    fields = [
        (
            fitted(F.col(quoted(f.name)), kinds[f.name.lower()], f.dataType)
            if f.name.lower() in kinds
            else F.lit(None).cast(f.dataType)
        ).alias(f.name)
        for f in columns.fields
    ]
    return F.struct(*fields, *says_all(columns))


def says_all(columns: ChangeColumns) -> list[Column]:
    """The mark of a row that says something of each column, where rows have one."""
    return [F.lit(None).cast(_SAID.dataType).alias(SELECTED)] if columns.rows_tell else []


def row_type(columns: ChangeColumns) -> StructType:
    """The type of an event's row."""
    return StructType([*columns.fields, *([_SAID] if columns.rows_tell else [])])


def flat(events: DataFrame, columns: ChangeColumns, also: tuple[str, ...] = ()) -> DataFrame:
    """Events with the columns of their rows side by side, as a merge that adds columns to its target needs them."""
    others = [F.col(quoted(ROW, name)).alias(name) for name in columns.values]
    own = [F.col(name) for name in events.columns if name.startswith(OWN) and name != ROW]
    return events.select(*(F.col(quoted(key)) for key in columns.keys), *others, *also, *own)


def _normal(batch: DataFrame, columns: ChangeColumns) -> DataFrame:
    truncates = columns.truncate if columns.truncate is not None else F.lit(False)
    # A truncate is about no key in particular: all of them form one group.
    keys = [F.when(~truncates, F.col(quoted(key))).alias(key) for key in columns.keys]
    given = {field.name: field.dataType for field in batch.schema.fields}
    values = [fitted(F.col(quoted(f.name)), given[f.name], f.dataType).alias(f.name) for f in columns.fields]
    said = [columns.selected.alias(SELECTED)] if columns.selected is not None else []
    return batch.select(
        *keys,
        columns.sequence.cast(columns.sequence_type).alias(SEQUENCE),
        (columns.delete & ~truncates).alias(DELETE),
        truncates.alias(TRUNCATE),
        F.struct(*values, *(said if columns.rows_tell else [])).alias(ROW),
        *([] if columns.rows_tell else said),
    )


def _reduced(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    keys = [F.col(quoted(key)) for key in columns.keys]
    no_key = ~F.col(TRUNCATE) & _any(key.isNull() for key in keys)
    counts = [
        F.count(F.lit(1)).alias(COUNT),
        F.max(F.col(SEQUENCE).isNull()).alias(_NO_SEQUENCE),
        F.max(no_key).alias(_NO_KEY),
        _ties(columns).alias(_TIES),
    ]
    rank = F.struct(SEQUENCE, DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(SEQUENCE, DELETE, ROW), rank).alias("winner")
    if not columns.history and not columns.by_column:
        grouped = events.groupBy(*keys, TRUNCATE).agg(winner, *counts)
    elif columns.history:
        grouped = events.groupBy(*keys, TRUNCATE, F.col(SEQUENCE).alias("at")).agg(winner, *counts).drop("at")
    else:
        # Column by column, each event may still say something.
        uncounted = F.lit(None).cast("long")
        return events.withColumns(
            {COUNT: F.lit(1), _NO_SEQUENCE: F.col(SEQUENCE).isNull(), _NO_KEY: no_key, _TIES: uncounted}
        )
    return grouped.select(*keys, TRUNCATE, COUNT, _NO_SEQUENCE, _NO_KEY, _TIES, "winner.*")


def _ties(columns: ChangeColumns) -> Column:
    """How many events of a group have the sequence of another one; NULL where that can't be counted on the way."""
    if columns.history:
        return F.count(F.lit(1)) - 1
    if (
        "collate" in columns.sequence_type.simpleString()
    ):  # Spark makes no sets of texts that differ in bytes alone
        return F.lit(None).cast("long")
    return F.count(F.lit(1)) - F.size(F.collect_set(SEQUENCE))


def _facts(columns: ChangeColumns) -> list[Column]:
    is_event = ~F.col(TRUNCATE)
    return [
        F.max(_NO_SEQUENCE).alias("no_sequence"),
        F.max(_NO_KEY).alias("no_key"),
        F.sum(COUNT).alias("received"),
        F.sum(F.when(is_event, F.col(_TIES))).alias("ties"),
        F.count_if(is_event).alias("kept"),
        F.count_if(is_event & F.col(DELETE)).alias("deletes"),
        encoded(F.min(F.when(is_event, F.col(SEQUENCE))), columns.sequence_type).alias("first_sequence"),
        encoded(F.max(F.when(F.col(TRUNCATE), F.col(SEQUENCE))), columns.sequence_type).alias("cleared_at"),
        *range_facts(columns),
    ]


def _refuse_nulls(found: Any, where: object) -> None:
    remedy = "Filter such events out before, or count them: @dp.expect_or_drop on a view that the flow reads."
    if found["no_sequence"]:
        raise NullSequence(
            "A change event's sequence_by is NULL; nothing of its batch was written.",
            where=where,
            remedy=remedy,
        )
    if found["no_key"]:
        raise NullKey(
            "A change event's key is NULL; nothing of its batch was written.", where=where, remedy=remedy
        )


def _any(conditions: Iterator[Column] | Any) -> Column:
    whole = F.lit(False)
    for condition in conditions:
        whole = whole | condition
    return whole
