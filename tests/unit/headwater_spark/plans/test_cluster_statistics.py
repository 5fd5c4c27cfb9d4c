"""A column to cluster by of which Delta would keep no ranges is refused by validate, not by Delta at the first write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.errors import UnsupportedArgument
from headwater_spark.plans.cluster_statistics import check_cluster_statistics

INT = IntegerType()
PAIR = StructType([StructField("x", INT), StructField("y", INT)])
# Leaves number 1 to 30, then s.x (31), s.y (32), Late (33) and `a.b` (34).
SCHEMA = StructType(
    [
        *(StructField(f"c{number}", INT) for number in range(1, 31)),
        StructField("s", PAIR),
        StructField("Late", INT),
        StructField("a.b", INT),
    ]
)
WIDE = Dataset("wide", DatasetName(None, "shop", "wide"), DatasetKind.STREAMING_TABLE)
DEFAULT = "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols"


def check(folder: Path, *names: str, settings: dict[str, str] | None = None, **properties: str) -> None:
    """Check a table that is to be clustered by these columns."""
    table = replace(
        WIDE,
        cluster_columns=names,
        table_properties={f"delta.{name}": value for name, value in properties.items()},
    )
    check_cluster_statistics(table, SCHEMA, (settings or {}).get, lambda dataset: folder / dataset.name)


def test_beyond_the_first_columns(tmp_path: Path):
    """Delta keeps ranges of 32 columns, fields of structs counted one by one: the next one is refused with its number."""
    check(tmp_path, "c1", "S.y", "s.x")
    for name, number in (("late", 33), ("a.b", 34)):
        with pytest.raises(
            UnsupportedArgument, match=f"clustered by '{name}'.* first 32 columns only"
        ) as caught:
            check(tmp_path, "c1", name)
        assert f"it is number {number}," in caught.value.remedy
        assert f'dataSkippingNumIndexedCols to "{number}"' in caught.value.remedy


@pytest.mark.parametrize("number", ["33", "-1"])
def test_more_columns_are_counted(tmp_path: Path, number: str):
    """A table property, or the session's default of it, that reaches the column is honoured; one that does not is as well."""
    check(tmp_path, "late", dataSkippingNumIndexedCols=number)
    check(tmp_path, "late", DATASKIPPINGNUMINDEXEDCOLS=number)
    check(tmp_path, "late", settings={DEFAULT: number})
    with pytest.raises(UnsupportedArgument, match="first 2 columns only"):
        check(tmp_path, "c3", settings={DEFAULT: number}, dataSkippingNumIndexedCols="2")


@pytest.mark.parametrize("listed", ["c1, Late", "`late`,c1", "s,`c1`,late"])
def test_columns_by_name(tmp_path: Path, listed: str):
    """Where the columns with ranges are named, it is these alone that count; a struct stands for its fields."""
    check(tmp_path, "late", "c1", dataSkippingStatsColumns=listed)
    check(tmp_path, "s.x", dataSkippingStatsColumns="s")
    check(tmp_path, "a.b", dataSkippingStatsColumns="`a.b`")
    for name, other in (("c2", listed), ("s.x", "s.y"), ("a.b", "a.b")):
        with pytest.raises(UnsupportedArgument, match="StatsColumns does not name it") as caught:
            check(tmp_path, name, dataSkippingStatsColumns=other)
        assert "Add it to the table property delta.dataSkippingStatsColumns" in caught.value.remedy


def test_a_table_that_is_there(tmp_path: Path):
    """It may have properties from elsewhere: Delta itself decides."""
    log = tmp_path / "wide" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").touch()
    check(tmp_path, "late")
