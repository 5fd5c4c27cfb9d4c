"""What a change flow asks for, checked against the columns of its source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.change_flow import ChangeFlow
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.names import quoted
from headwater_spark.plans.partition_texts import STORED_AS_NULL, losing_texts
from headwater_spark.plans.schemas import orderable, stored_schema

START_AT, END_AT = "__START_AT", "__END_AT"
SYSTEM_START_AT, SYSTEM_END_AT = "__SYSTEM_START_AT", "__SYSTEM_END_AT"
# The prefix of the engine's own columns; no column of a source may have it.
OWN = "__hw_"
_HYDRATION = (
    "The target's own query fills it before the changes: give its rows the columns of the changes, the sequence included "
    '(F.lit(0).alias("version") is older than every change).'
)
SEQUENCE, DELETE, TRUNCATE = f"{OWN}sequence", f"{OWN}delete", f"{OWN}truncate"
# Since when an event is known.
SYSTEM = f"{OWN}system"


@dataclass(frozen=True)
class ChangeColumns:
    """A change flow over a source of known columns. Expressions are columns over the source's rows.

    ``sequence_column``: the target's column that holds the sequence, where there is one (``sequence_by`` is a plain
    column that the target keeps). ``ignored``: columns whose NULL leaves the value as it was. ``selected``: the names of
    the columns that an event sets, where it does not set them all. ``system``: of a bitemporal history, since when an event is
    known. ``partitions``: the keys that are texts and that the target is partitioned by.
    """

    keys: tuple[str, ...]
    fields: tuple[StructField, ...]
    sequence: Column
    sequence_type: DataType
    sequence_column: str | None
    delete: Column
    truncate: Column | None
    history: bool
    tracked: tuple[str, ...]
    ignored: tuple[str, ...]
    selected: Column | None = None
    system: Column | None = None
    system_type: DataType | None = None
    partitions: tuple[str, ...] = ()

    @property
    def scd_type(self) -> int | str:
        """As users name it: 1, 2 or ``bitemporal``."""
        if self.system is not None:
            return "bitemporal"
        return 2 if self.history else 1

    @property
    def by_column(self) -> bool:
        """Whether an event may leave single values as they were."""
        return bool(self.ignored) or self.selected is not None

    @property
    def rows_name_columns(self) -> bool:
        """Whether an event's row lists the columns that it sets."""
        return self.history and self.selected is not None

    @property
    def key_columns(self) -> list[Column]:
        """The keys, of a frame that has them by name."""
        return [F.col(quoted(key)) for key in self.keys]

    def stored_key(self, key: str) -> Column:
        """A key of the source as the target has it: NULL, which names no row, where that does not keep the text."""
        column = F.col(quoted(key))
        return F.when(~column.isin(*STORED_AS_NULL), column) if key in self.partitions else column

    @property
    def or_lost(self) -> str:
        """What of a key is as bad as NULL, as the end of a clause."""
        if not self.partitions:
            return ""
        columns, texts = " or ".join(self.partitions), " or ".join(map(repr, STORED_AS_NULL))
        return f" (or {texts} in {columns}, by which the target is partitioned: Delta stores that as NULL)"

    @property
    def names(self) -> list[str]:
        """The columns of the target that come from the source."""
        return [field.name for field in self.fields]

    @property
    def values(self) -> list[str]:
        """Those of them that are not keys."""
        return [name for name in self.names if name not in self.keys]

    @property
    def target_schema(self) -> StructType:
        """The columns of the target."""
        ends = [StructField(name, self.sequence_type) for name in (START_AT, END_AT)] if self.history else []
        if self.system_type is not None:
            ends += [StructField(name, self.system_type) for name in (SYSTEM_START_AT, SYSTEM_END_AT)]
        return stored_schema(StructType([*self.fields, *ends]))

    def type_of(self, name: str) -> DataType:
        """The type of one of ``names``."""
        return next(field.dataType for field in self.fields if field.name == name)


def change_columns(
    flow: ChangeFlow, frame: DataFrame, where: object, partitions: Collection[str] = ()
) -> ChangeColumns:
    """Check a change flow against the rows that it reads. ``partitions``: the columns that its target is partitioned by.

    Raises:
        InvalidChangeFlow: an unknown column, an expression that does not fit, columns that exclude each other.
    """
    schema = frame.schema
    reading = _Reading(frame, where, lenient=flow.hydrates)
    keys = reading.names(flow.keys, "keys")
    if not keys:
        raise _invalid(
            "keys are needed: the columns that identify the row an event is about",
            where,
            'Write keys=["id"], with the columns of the key.',
        )
    fields = _chosen(flow, reading, keys, schema, where)
    chosen = [field.name for field in fields]
    values = [name for name in chosen if name not in keys]
    sequence = reading.expression(flow.sequence_by, "sequence_by")
    deletes = reading.condition(flow.apply_as_deletes, "apply_as_deletes")
    truncate = reading.condition(flow.apply_as_truncates, "apply_as_truncates")
    sequence_column = reading.plain_name(flow.sequence_by)
    ignored = _ignored(flow, reading, keys, values, where)
    sequence_type = reading.order(sequence, "sequence_by")
    bitemporal = flow.system_sequence_by is not None
    system = reading.expression(flow.system_sequence_by, "system_sequence_by") if bitemporal else None
    return ChangeColumns(
        tuple(keys),
        # Any column may be NULL, whatever the source says: where an event does not set it, or the row is deleted.
        tuple(StructType(list(fields)).toNullable().fields),
        sequence,
        sequence_type,
        sequence_column if sequence_column in chosen else None,
        F.lit(False) if deletes is None else F.coalesce(deletes, F.lit(False)),
        None if truncate is None else F.coalesce(truncate, F.lit(False)),
        flow.history,
        tuple(_tracked(flow, reading, keys, values, where)),
        tuple(ignored),
        _selected(flow, reading, ignored, where),
        system,
        None if system is None else reading.order(system, "system_sequence_by"),
        losing_texts([(key, schema[key].dataType) for key in keys], partitions),
    )


class _Reading:
    """Names and expressions as users give them, read against one schema."""

    def __init__(self, frame: DataFrame, where: object, *, lenient: bool = False) -> None:
        # Lenient: a list may name columns that are not there.
        self._lenient = lenient
        self._frame = frame
        self._by_lower = {name.lower(): name for name in frame.columns}
        self._where = where
        own = next((name for name in frame.columns if name.lower().startswith(OWN)), None)
        if own is not None:
            raise _invalid(
                f"the source's column {own!r} has a name that is kept for the engine",
                where,
                f"Rename it in a view that reads the source, and name that view; or drop {own!r} there.",
            )

    def plain_name(self, value: Any) -> str | None:
        """The source's column that ``value`` names, None where it is not a plain name."""
        text = value if isinstance(value, str) else str(value._jc.toString())  # noqa: SLF001 - no public text
        text = text.strip().lower()
        bare = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
        return self._by_lower.get(text) or self._by_lower.get(bare)

    def names(self, values: Iterable[Any] | None, argument: str) -> list[str]:
        """Column names, as the source spells them."""
        names = []
        for item in values or ():
            name = self.plain_name(item)
            if name is None and self._lenient and argument != "keys":
                continue
            if name is None:
                raise _invalid(
                    f"{argument} names {str(item)!r}, which the source does not have",
                    self._where,
                    did_you_mean(
                        nearest(str(item), self._frame.columns),
                        f"Its columns are: {', '.join(self._frame.columns)}.",
                    ),
                )
            if name in names:
                raise _invalid(f"{argument} names {name!r} twice", self._where, "Name it once.")
            names.append(name)
        return names

    def kept(self, values: Iterable[Any] | None, argument: str, target: Collection[str]) -> list[str]:
        """As ``names``, of columns that the ``target`` has."""
        names = self.names(values, argument)
        unknown = next((name for name in names if name not in target), None)
        if unknown is not None:
            raise _invalid(
                f"{argument} names {unknown!r}, which the target does not have: column_list or except_column_list leaves it out",
                self._where,
                f"Have the target keep {unknown!r}, or take it off {argument}.",
            )
        return names

    def expression(self, value: Any, argument: str) -> Column:
        """A column or SQL text as an expression over the source."""
        if not isinstance(value, str | Column):
            raise _invalid(
                f"{argument} takes a column or SQL text, not {type(value).__name__}",
                self._where,
                f'Write {argument}="column", or a column: F.col("column"), F.expr("SQL").',
            )
        try:
            column = F.expr(value) if isinstance(value, str) else value
            self._frame.select("*", column)  # beside the columns of an event: no aggregate can stand there
        except PySparkException as error:
            there = f"Write an expression over the source's columns: {', '.join(self._frame.columns)}."
            remedy = _HYDRATION if self._lenient else there
            raise _invalid(
                f"{argument} does not fit the source: {describe(error)}", self._where, remedy
            ) from None
        return column

    def order(self, column: Column, argument: str) -> DataType:
        """The type of a sequence; a row that has not ended has no end, nor any part of one."""
        kind = self._frame.select(column.alias("s")).schema.toNullable()[0].dataType
        if not orderable(kind):
            raise _invalid(
                f"{argument} is {kind.simpleString()}, which has no order",
                self._where,
                "Name a number, a text, a date, a timestamp, or a struct of such columns, compared in their order.",
            )
        return kind

    def type_of(self, column: Column) -> str:
        """The type of an expression over the source."""
        return self._frame.select(column).schema[0].dataType.simpleString()

    def condition(self, value: Any, argument: str) -> Column | None:
        """A condition over the source, None where there is none."""
        if value is None:
            return None
        column = self.expression(value, argument)
        if self.type_of(column) not in ("boolean", "void"):
            raise _invalid(
                f"{argument} is {self.type_of(column)}, not a condition",
                self._where,
                "Write one that is true for such events: \"op = 'DELETE'\".",
            )
        return column


def _chosen(
    flow: ChangeFlow, reading: _Reading, keys: list[str], schema: StructType, where: object
) -> tuple[StructField, ...]:
    if flow.columns is not None and flow.except_columns is not None:
        raise _invalid("column_list and except_column_list exclude each other", where, "Keep one.")
    if flow.columns is not None:
        names = reading.names(flow.columns, "column_list")
    else:
        excluded = reading.names(flow.except_columns, "except_column_list")
        if flow.columns_to_update is not None:  # it describes the event, not the row
            excluded.append(reading.plain_name(flow.columns_to_update) or "")
        names = [name for name in schema.names if name not in excluded]
    missing = [key for key in keys if key not in names]
    if missing:
        remedy = f"Add {missing[0]!r} to column_list, or take it off except_column_list."
        raise _invalid(f"the target must keep its keys, and {missing[0]!r} is left out", where, remedy)
    return tuple(schema[name] for name in names)


def _ignored(
    flow: ChangeFlow, reading: _Reading, keys: list[str], values: list[str], where: object
) -> list[str]:
    if flow.ignore_nulls_columns is not None and flow.ignore_nulls_except is not None:
        raise _invalid(
            "ignore_null_updates_column_list and ignore_null_updates_except_column_list exclude each other",
            where,
            "Keep one.",
        )
    if flow.ignore_nulls_columns is not None:
        kept = reading.kept(flow.ignore_nulls_columns, "ignore_null_updates_column_list", (*keys, *values))
        return [name for name in kept if name in values]
    excluded = reading.names(flow.ignore_nulls_except, "ignore_null_updates_except_column_list")
    ignores_nulls = flow.ignore_nulls or flow.ignore_nulls_except is not None
    return [name for name in values if name not in excluded] if ignores_nulls else []


def _selected(flow: ChangeFlow, reading: _Reading, ignored: list[str], where: object) -> Column | None:
    if flow.columns_to_update is None:
        return None
    if flow.hydrates:  # its rows set all columns, and are remembered as the changes are
        return F.lit(None).cast("array<string>")
    if ignored:
        raise _invalid(
            "columns_to_update and ignore_null_updates exclude each other",
            where,
            "Keep columns_to_update where an event says which columns it sets, else ignore_null_updates.",
        )
    names = reading.expression(flow.columns_to_update, "columns_to_update")
    if reading.type_of(names) != "array<string>":
        raise _invalid(
            f"columns_to_update is {reading.type_of(names)}, not an array of column names",
            where,
            "Name a column of the type array<string> of the events, with the names of the columns that each one sets.",
        )
    # A NULL among the names would make the result of a lookup NULL.
    return F.transform(F.filter(names, lambda name: name.isNotNull()), F.lower)


def is_selected(name: str, selected: Column) -> Column:
    """Whether an event that sets the columns named in ``selected`` sets this one; a NULL list means all columns."""
    return F.coalesce(F.array_contains(selected, name.lower()), F.lit(True))


def _tracked(
    flow: ChangeFlow, reading: _Reading, keys: list[str], values: list[str], where: object
) -> list[str]:
    if flow.tracked_columns is not None and flow.untracked_columns is not None:
        raise _invalid(
            "track_history_column_list and track_history_except_column_list exclude each other",
            where,
            "Keep one.",
        )
    if not flow.history:
        if flow.tracked_columns is not None or flow.untracked_columns is not None:
            raise _invalid(
                "only type 2 keeps a history to track",
                where,
                "Say stored_as_scd_type=2 (STORED AS SCD TYPE 2 in SQL), or take the tracked columns out.",
            )
        return []
    target = (*keys, *values)
    if flow.tracked_columns is not None:
        tracked = reading.kept(flow.tracked_columns, "track_history_column_list", target)
        return [name for name in tracked if name in values]
    excluded = reading.kept(flow.untracked_columns, "track_history_except_column_list", target)
    return [name for name in values if name not in excluded]


def _invalid(problem: str, where: object, remedy: str) -> InvalidChangeFlow:
    return InvalidChangeFlow(f"AUTO CDC: {problem}.", where=where, remedy=remedy)
