"""Whether the columns of a table take what its stream gives now, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater.definitions.output_kind import OutputKind
from headwater_spark.execution.column_types import check_column_types
from headwater_spark.plans.output_mode import OutputMode

INT, LONG, TEXT, DAY = T.IntegerType(), T.LongType(), T.StringType(), T.DateType()
TIME, PLAIN_TIME, FLOAT = T.TimestampType(), T.TimestampNTZType(), T.DoubleType()
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["timestampNtz"],
}
COARSE, FINE = T.DecimalType(10, 1), T.DecimalType(10, 3)
STRUCT = T.StructType([T.StructField("a", INT)])


def checked(
    root: Path, stored: T.DataType, new: T.DataType, *, mode: OutputKind = OutputKind.APPEND, name: str = "ID",
    there: bool = True, **properties: str,
) -> None:  # fmt: skip
    """Check a flow whose column is ``new`` against a table that has it as ``stored``."""
    run = run_of(context_of(root, modes={"orders": OutputMode(mode)}), dataset(), flow())
    assert run.delta_table is not None
    if there:
        schema = T.StructType([T.StructField("id", stored)]).jsonValue()
        commit(Path(str(run.delta_table)), schema=schema, properties=properties, protocol=PROTOCOL)
    check_column_types(run, T.StructType([T.StructField(name, new)]))


@pytest.mark.parametrize(
    ("stored", "new"),
    [(LONG, LONG), (LONG, INT), (TEXT, INT), (TEXT, DAY), (TIME, DAY), (PLAIN_TIME, DAY), (STRUCT, STRUCT)],
)
def test_values_that_fit(tmp_path: Path, stored: T.DataType, new: T.DataType):
    """What the column holds, each plain value as text, and a day as the moment at which it begins."""
    checked(tmp_path, stored, new)


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        (INT, LONG),
        (INT, FLOAT),
        (COARSE, FINE),
        (LONG, TEXT),
        (DAY, TIME),
        (DAY, TEXT),
        (TIME, TEXT),
        (TEXT, STRUCT),
    ],
)
def test_values_that_would_be_cut(tmp_path: Path, stored: T.DataType, new: T.DataType):
    """Refused with both types, before anything is written."""
    with pytest.raises(ColumnTypeChanged) as caught:
        checked(tmp_path, stored, new)
    assert f"is {stored.simpleString()}, and 'orders' now gives {new.simpleString()}" in caught.value.what
    assert f'.cast("{stored.simpleString()}")' in caught.value.remedy


def test_a_column_that_widens(tmp_path: Path):
    """Where the table says so it takes a wider type, and no other; where it does not, the remedy names the property, if that helps."""
    property_ = {"delta.enableTypeWidening": "true"}
    checked(tmp_path / "widens", INT, LONG, **property_)
    with pytest.raises(ColumnTypeChanged) as caught:
        checked(tmp_path / "other", LONG, TEXT, **property_)
    assert "delta.enableTypeWidening" not in caught.value.remedy
    with pytest.raises(ColumnTypeChanged, match="would be cut") as caught:
        checked(tmp_path / "does not", INT, LONG)
    assert "delta.enableTypeWidening" in caught.value.remedy


@pytest.mark.parametrize(
    "more",
    [{"mode": OutputKind.CHANGES}, {"mode": OutputKind.COMPLETE}, {"name": "new"}, {"there": False}],
)
def test_what_is_not_checked_here(tmp_path: Path, more: dict[str, Any]):
    """Changes are fitted batch by batch, a table that is replaced gets its columns anew, and a new column has no type yet."""
    checked(tmp_path, INT, TEXT, **more)


def test_rows_that_are_replaced_by_key(tmp_path: Path):
    """A MERGE cuts values as silently as the sink does."""
    with pytest.raises(ColumnTypeChanged):
        checked(tmp_path, INT, TEXT, mode=OutputKind.UPDATE)
