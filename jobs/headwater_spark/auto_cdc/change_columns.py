"""What a change flow asks for, checked against the columns of its source."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StructField, StructType, VariantType

from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.change_flow import ChangeFlow
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.schemas import stored_schema

START_AT, END_AT = "__START_AT", "__END_AT"
# Names that the engine gives to columns of its own; no column of a source may begin so.
OWN = "__hw_"
_HYDRATION = (
    "The target's own query fills it before the changes: give its rows the columns that the changes have, the sequence too "
    '(F.lit(0).alias("version") is older than every change).'
)
SEQUENCE, DELETE, TRUNCATE = f"{OWN}sequence", f"{OWN}delete", f"{OWN}truncate"


@dataclass(frozen=True)
class ChangeColumns:
    """A change flow over a source of known columns. Expressions are columns over the source's rows.

    ``sequence_column``: the target's column that holds the sequence, where there is one (``sequence_by`` is a plain
    column that the target keeps). ``ignored``: columns whose NULL leaves the value as it was. ``selected``: the names of the
    columns that an event says something of, where it does not of all.
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

    @property
    def by_column(self) -> bool:
        """Whether an event may leave single values as they were."""
        return bool(self.ignored) or self.selected is not None

    @property
    def rows_tell(self) -> bool:
        """Whether the rows of events tell themselves what they say something of."""
        return self.history and self.selected is not None

    @property
    def names(self) -> list[str]:
        """The columns of the target that come from the source."""
        return [field.name for field in self.fields]

    @property
    def values(self) -> list[str]:
        """Those of them that are no keys."""
        return [name for name in self.names if name not in self.keys]

    @property
    def target_schema(self) -> StructType:
        """The columns of the target."""
        ends = [StructField(name, self.sequence_type) for name in (START_AT, END_AT)] if self.history else []
        return stored_schema(StructType([*self.fields, *ends]))

    def type_of(self, name: str) -> DataType:
        """The type of one of ``names``."""
        return next(field.dataType for field in self.fields if field.name == name)


def change_columns(flow: ChangeFlow, frame: DataFrame, where: object) -> ChangeColumns:
    """Check a change flow against the rows that it reads.

    Raises:
        InvalidChangeFlow: an unknown column, an expression that does not fit, columns that exclude each other.
    """
    schema = frame.schema
    reading = _Reading(frame, where, lenient=flow.hydrates)
    keys = reading.names(flow.keys, "keys")
    if not keys:
        raise _wrong("keys are needed: the columns that tell which row an event is about", where)
    fields = _chosen(flow, reading, keys, schema, where)
    chosen = [field.name for field in fields]
    values = [name for name in chosen if name not in keys]
    sequence = reading.expression(flow.sequence_by, "sequence_by")
    deletes = reading.condition(flow.apply_as_deletes, "apply_as_deletes")
    truncate = reading.condition(flow.apply_as_truncates, "apply_as_truncates")
    sequence_column = reading.plain_name(flow.sequence_by)
    ignored = _ignored(flow, reading, values, where)
    # Of a row that has not ended, there is no sequence, and none of its parts.
    sequence_type = frame.select(sequence.alias("s")).schema.toNullable()[0].dataType
    if not orderable(sequence_type):
        raise _wrong(f"sequence_by is {sequence_type.simpleString()}, which has no order", where)
    return ChangeColumns(
        tuple(keys),
        # What an event says nothing of, and a row that is gone, is NULL in each column, whatever the source has.
        tuple(StructType(list(fields)).toNullable().fields),
        sequence,
        sequence_type,
        sequence_column if sequence_column in chosen else None,
        F.lit(False) if deletes is None else F.coalesce(deletes, F.lit(False)),
        None if truncate is None else F.coalesce(truncate, F.lit(False)),
        flow.history,
        tuple(_tracked(flow, reading, values, where)),
        tuple(ignored),
        _selected(flow, reading, ignored, where),
    )


def quoted(*path: str) -> str:
    """A column's name as Spark reads it in texts, whatever characters it has; several parts are a path."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def orderable(kind: DataType) -> bool:
    """Whether values of a type can be compared by Spark."""
    if isinstance(kind, MapType | VariantType):
        return False
    if isinstance(kind, StructType):
        return all(orderable(field.dataType) for field in kind.fields)
    return orderable(kind.elementType) if hasattr(kind, "elementType") else True


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
            raise _wrong(f"the source's column {own!r} has a name that is kept for the engine", where)

    def plain_name(self, given: Any) -> str | None:
        """The source's column that ``given`` names, None where it is no plain name of one."""
        text = given if isinstance(given, str) else str(given._jc.toString())  # noqa: SLF001 - no public text
        text = text.strip().lower()
        bare = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
        return self._by_lower.get(text) or self._by_lower.get(bare)

    def names(self, given: Iterable[Any] | None, argument: str) -> list[str]:
        """Column names, as the source spells them."""
        found = []
        for item in given or ():
            name = self.plain_name(item)
            if name is None and self._lenient and argument != "keys":
                continue
            if name is None:
                near = difflib.get_close_matches(str(item), self._frame.columns, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise _wrong(
                    f"{argument} names {str(item)!r}, which the source does not have{hint}", self._where
                )
            if name in found:
                raise _wrong(f"{argument} names {name!r} twice", self._where)
            found.append(name)
        return found

    def expression(self, given: Any, argument: str) -> Column:
        """A column or SQL text as an expression over the source."""
        column = F.expr(given) if isinstance(given, str) else given
        if not isinstance(column, Column):
            raise _wrong(f"{argument} takes a column or SQL text, not {type(given).__name__}", self._where)
        try:
            self._frame.select(column)
        except PySparkException as error:
            remedy = _HYDRATION if self._lenient else ""
            raise _wrong(
                f"{argument} does not fit the source: {describe(error)}", self._where, remedy
            ) from None
        return column

    def type_of(self, column: Column) -> str:
        """The type of an expression over the source."""
        return self._frame.select(column).schema[0].dataType.simpleString()

    def condition(self, given: Any, argument: str) -> Column | None:
        """A condition over the source, None where none was given."""
        if given is None:
            return None
        column = self.expression(given, argument)
        if self.type_of(column) not in ("boolean", "void"):
            raise _wrong(f"{argument} is no condition", self._where)
        return column


def _chosen(
    flow: ChangeFlow, reading: _Reading, keys: list[str], schema: StructType, where: object
) -> tuple[StructField, ...]:
    if flow.columns is not None and flow.except_columns is not None:
        raise _wrong("column_list and except_column_list exclude each other", where)
    if flow.columns is not None:
        names = reading.names(flow.columns, "column_list")
    else:
        left_out = reading.names(flow.except_columns, "except_column_list")
        if flow.columns_to_update is not None:  # it tells of the event, not of the row
            left_out.append(reading.plain_name(flow.columns_to_update) or "")
        names = [name for name in schema.names if name not in left_out]
    missing = [key for key in keys if key not in names]
    if missing:
        raise _wrong(f"the target must keep its keys, and {missing[0]!r} is left out", where)
    return tuple(schema[name] for name in names)


def _ignored(flow: ChangeFlow, reading: _Reading, values: list[str], where: object) -> list[str]:
    if flow.ignore_nulls_columns is not None and flow.ignore_nulls_except is not None:
        raise _wrong(
            "ignore_null_updates_column_list and ignore_null_updates_except_column_list exclude each other",
            where,
        )
    if flow.ignore_nulls_columns is not None:
        return [
            n
            for n in reading.names(flow.ignore_nulls_columns, "ignore_null_updates_column_list")
            if n in values
        ]
    left_out = reading.names(flow.ignore_nulls_except, "ignore_null_updates_except_column_list")
    wanted = flow.ignore_nulls or flow.ignore_nulls_except is not None
    return [name for name in values if name not in left_out] if wanted else []


def _selected(flow: ChangeFlow, reading: _Reading, ignored: list[str], where: object) -> Column | None:
    if flow.columns_to_update is None:
        return None
    if flow.hydrates:  # its rows say all, and are remembered as the changes are
        return F.lit(None).cast("array<string>")
    if ignored:
        raise _wrong("columns_to_update and ignore_null_updates exclude each other", where)
    names = reading.expression(flow.columns_to_update, "columns_to_update")
    if reading.type_of(names) != "array<string>":
        raise _wrong("columns_to_update is no column of lists of names", where)
    # A NULL among the names would leave open which columns are meant.
    return F.transform(F.filter(names, lambda name: name.isNotNull()), F.lower)


def is_named(name: str, said: Column) -> Column:
    """Whether an event whose list of names is ``said`` says something of a column; without a list it does of all."""
    return F.coalesce(F.array_contains(said, name.lower()), F.lit(True))


def _tracked(flow: ChangeFlow, reading: _Reading, values: list[str], where: object) -> list[str]:
    if flow.tracked_columns is not None and flow.untracked_columns is not None:
        raise _wrong(
            "track_history_column_list and track_history_except_column_list exclude each other", where
        )
    if not flow.history:
        if flow.tracked_columns is not None or flow.untracked_columns is not None:
            raise _wrong("only type 2 keeps a history to track", where)
        return []
    keys = reading.names(flow.keys, "keys")

    def listed(given: Iterable[Any] | None, argument: str) -> list[str]:
        names = reading.names(given, argument)
        lost = next((name for name in names if name not in values and name not in keys), None)
        if lost is not None:
            raise _wrong(
                f"{argument} names {lost!r}, which the target does not have: column_list or except_column_list leaves it out",
                where,
                f"Have the target keep {lost!r}, or take it off {argument}.",
            )
        return names

    if flow.tracked_columns is not None:
        return [n for n in listed(flow.tracked_columns, "track_history_column_list") if n in values]
    left_out = listed(flow.untracked_columns, "track_history_except_column_list")
    return [name for name in values if name not in left_out]


def _wrong(what: str, where: object, remedy: str = "") -> InvalidChangeFlow:
    return InvalidChangeFlow(
        f"AUTO CDC: {what}.", where=where, remedy=remedy or "Correct the call's arguments."
    )
