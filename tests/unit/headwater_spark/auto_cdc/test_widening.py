"""Columns are widened beside the target first: after a crash between the two, the next batch still finds the target to widen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import FIELDS
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.widening import widen_target

NOTHING: Any = None
SIZE = T.StructField("size", T.IntegerType())


def with_size(kind: T.DataType, *more: T.StructField) -> ChangeColumns:
    fields = (*FIELDS, T.StructField("size", kind), *more)
    return ChangeColumns(("key",), fields, NOTHING, T.LongType(), None, NOTHING, None, False, (), ())


def widened(
    tmp_path: Path, steps: list[str], columns: ChangeColumns, schema: T.StructType, *, widens: bool = True
) -> Any:
    if not (tmp_path / "_delta_log").exists():
        commit(tmp_path, properties={"delta.enableTypeWidening": "True"} if widens else {})
    spark: Any = SimpleNamespace(sql=lambda text: steps.append(text.rpartition("COLUMN ")[2]))
    side: Any = SimpleNamespace(
        widen=lambda row: steps.append(f"beside: {row['size'].dataType.simpleString()}")
    )
    return widen_target(spark, columns, tmp_path, schema, side, "main.py:1")


def test_the_order(tmp_path: Path):
    """What is remembered first, the target second; without anything to widen neither is touched."""
    steps: list[str] = []
    stored = T.StructType([*FIELDS, SIZE])
    fitted = widened(tmp_path, steps, with_size(T.LongType()), stored)
    assert steps == ["beside: bigint", "`size` TYPE bigint"]
    assert fitted.type_of("size") == T.LongType()
    steps.clear()
    assert widened(tmp_path, steps, with_size(T.IntegerType()), stored) is None
    assert steps == []


def test_columns_that_are_widened_together(tmp_path: Path):
    """All in one commit of the target: no reader sees some of them widened."""
    steps: list[str] = []
    stored = T.StructType([*FIELDS, SIZE, T.StructField("a b", T.FloatType())])
    widened(tmp_path, steps, with_size(T.LongType(), T.StructField("a b", T.DoubleType())), stored)
    assert steps == ["beside: bigint", "`size` TYPE bigint, `a b` TYPE double"]


def test_a_table_that_may_not_be_widened(tmp_path: Path):
    """Nothing is changed, beside it neither."""
    steps: list[str] = []
    stored = T.StructType([*FIELDS, SIZE])
    with pytest.raises(ColumnTypeChanged):
        widened(tmp_path, steps, with_size(T.LongType()), stored, widens=False)
    assert steps == []
