"""AUTO CDC where a source's columns change: wider types are taken, fields that are gone are NULL, all else is refused whole."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.change_table import Changes, flow
from tests.pipeline_case import read_rows

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater.delta_log.commits import newest_version
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.change_columns import change_columns

NARROW = """key INT, at INT, op STRING, b TINYINT, i INT, f FLOAT, d DATE, dec DECIMAL(6,2),
    s STRUCT<n: SMALLINT, gone: STRING, list: ARRAY<STRUCT<x: INT, lost: STRING>>>, m MAP<STRING, INT>"""
WIDE = """key INT, at INT, op STRING, b BIGINT, i BIGINT, f DOUBLE, d TIMESTAMP_NTZ, dec DECIMAL(12,4),
    s STRUCT<n: BIGINT, list: ARRAY<STRUCT<x: BIGINT>>>, m MAP<STRING, BIGINT>"""
# The table goes on with a source that has gone back, in part.
MIXED = WIDE.replace("b BIGINT", "b SMALLINT").replace("f DOUBLE", "f FLOAT")
WIDENS = {"delta.enableTypeWidening": "true"}
NAMES = ("key", "at", "op", "b", "i", "f", "d", "dec", "s", "m")
FLOWS: dict[str, dict[str, Any]] = {
    "type 1": {},
    "type 1, nulls ignored": {"ignore_nulls_columns": ("b", "d")},
    "type 2": {"history": True, "except_columns": ("op", "at")},
}


def narrow(key: int, at: int, op: str = "U", n: int = 1) -> tuple[Any, ...]:
    """An event as the source had it first."""
    inner = {"n": n, "gone": "g", "list": [{"x": n, "lost": "l"}]}
    return key, at, op, n, n, n / 2, date(2026, 1, n), Decimal(n) / 4, inner, {"k": n}


def wide(key: int, at: int, op: str = "U", n: int = 2**40, b: int = 2**40) -> tuple[Any, ...]:
    """An event as the source has it then."""
    inner = {"n": n, "list": [{"x": n}]}
    return (
        key,
        at,
        op,
        b,
        n,
        0.1 if b > 127 else 0.5,
        datetime(2026, 1, 2, 3),  # noqa: DTZ001 - a TIMESTAMP_NTZ
        Decimal("12345678.1234"),
        inner,
        {"k": n},
    )


def as_rows(events: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Events as the oracle takes them: values as the wide types have them."""
    rows = []
    for event in events:
        row = dict(zip(NAMES, event, strict=True))
        if type(row["d"]) is date:
            row["d"] = datetime.combine(row["d"], time.min)
        listed = [(item["x"], item.get("lost")) for item in row["s"]["list"]]
        row["s"] = (row["s"]["n"], row["s"].get("gone"), tuple(listed))
        row["m"] = tuple(row["m"].items())
        rows.append(row)
    return rows


def plain(value: Any) -> Any:
    """A value of Spark's rows in the oracle's form."""
    if isinstance(value, Row | list):
        return tuple(map(plain, value))
    return tuple(value.items()) if isinstance(value, dict) else value


def reading(changes: Changes, schema: str, options: dict[str, Any]) -> None:
    """The source has other columns from now on."""
    changes.schema = schema
    changes.columns = change_columns(flow(**options), changes.spark.createDataFrame([], schema), None)


def versions(changes: Changes) -> list[int | None]:
    """The versions of the table and of what is remembered beside it."""
    return [newest_version(path) for path in (changes.target.path, changes.target.memory / "events")]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", FLOWS)
def test_wider_types(spark: SparkSession, tmp_path: Path, kind: str):
    """Rows and remembered events from before, late ones and new ones come to what the oracle computes over the wide types; after
    that other types are refused.
    """
    options = FLOWS[kind]
    changes = Changes(spark, tmp_path, flow(**options), NARROW, WIDENS)
    # Key 1 has a run of two, whose events a history remembers; key 3 is deleted, and comes back late.
    first = [
        narrow(1, 10),
        narrow(1, 20),
        narrow(2, 10, n=2),
        narrow(3, 10),
        narrow(3, 30, "D"),
        narrow(4, 10, n=4),
    ]
    changes.apply(first)
    reading(changes, WIDE, options)
    second = [wide(1, 15), wide(2, 20), wide(3, 20), wide(5, 10), wide(4, 9), wide(5, 11, "D")]
    before = versions(changes)[0] or 0
    changes.apply(second)
    # The feature of a type, all types, and the rows.
    assert versions(changes)[0] == before + 3
    third = []
    if options.get("history"):
        third = [wide(1, 12, b=7), wide(2, 30, b=7), wide(3, 40, b=8), wide(6, 1, b=9)]
        reading(changes, MIXED, options)
        changes.apply(third)
    arguments: dict[str, Any] = {
        "keys": ("key",),
        "sequence_by": "at",
        "apply_as_deletes": lambda row: row["op"] == "D",
    }
    arguments["except_column_list"] = options.get("except_columns", ("op",))
    if "ignore_nulls_columns" in options:
        arguments["ignore_null_updates"] = options["ignore_nulls_columns"]
    oracle = expected_scd2 if options.get("history") else expected_scd1
    wanted = [tuple(row.values()) for row in oracle(as_rows([*first, *second, *third]), **arguments)]
    table = spark.read.format("delta").load(str(changes.target.path))
    order = ["key", "__START_AT"] if options.get("history") else ["key"]
    assert [plain(row) for row in table.orderBy(*order).collect()] == wanted
    kinds = {field.name: field.dataType.simpleString() for field in table.schema}
    assert [kinds[name] for name in ("b", "i", "f", "d", "dec", "m")] == [
        "bigint", "bigint", "double", "timestamp_ntz", "decimal(12,4)", "map<string,bigint>",
    ]  # fmt: skip
    assert kinds["s"] == "struct<n:bigint,gone:string,list:array<struct<x:bigint,lost:string>>>"
    if kind == "type 2":
        refuses(changes)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("history", [False, True])
def test_columns_and_fields_that_a_source_gains(spark: SparkSession, tmp_path: Path, history: bool):
    """A column or a field of a struct that a source gains is NULL in older rows, and compared as such."""
    start = "key INT, at INT, op STRING, who STRUCT<name: STRING"
    changes = Changes(spark, tmp_path, flow(history=history), f"{start}>")
    changes.apply([(1, 10, "U", ("a",)), (3, 10, "U", ("c",)), (4, 10, "U", ("d",))])
    reading(changes, f"{start}, age: INT>, note STRING", {"history": history})
    # As new as the rows there are, and greater by what is new; late; of a new key; and less where the old column differs.
    changes.apply(
        [
            (1, 10, "U", ("a", 3), None), (1, 5, "U", ("z", None), "late"), (2, 5, "U", ("b", 4), None),
            (3, 10, "U", ("c", None), "new"), (4, 10, "U", ("b", 9), "less"),
        ]
    )  # fmt: skip
    rows = [
        (1, 5, {"name": "z", "age": None}, "late", 5, 10), (1, 10, {"name": "a", "age": 3}, None, 10, None),
        (2, 5, {"name": "b", "age": 4}, None, 5, None), (3, 10, {"name": "c", "age": None}, "new", 10, None),
        (4, 10, {"name": "d", "age": None}, None, 10, None),
    ]  # fmt: skip
    order = 'key, "__START_AT"' if history else "key"
    columns = 'key, at, who, note, "__START_AT", "__END_AT"' if history else "key, at, who, note"
    found = read_rows(changes.target.path, columns, order)
    assert found == (rows if history else [row[:4] for row in rows[1:]])


def refuses(changes: Changes) -> None:
    """A type that does not hold the old values, or a table that is not to widen: neither the table nor what is remembered gets anything."""
    for widens, schema, what in (
        (True, WIDE.replace("i BIGINT", "i STRING"), "'i' is bigint in the table, and now comes as string"),
        (True, WIDE.replace("x: BIGINT", "x: STRING"), "'s' is struct<"),
        (
            False,
            WIDE.replace("(12,4)", "(20,4)"),
            r"'dec' is decimal\(12,4\) in the table, and now comes as decimal\(20,4\)",
        ),
    ):
        if not widens:
            table = f"delta.`{changes.target.path}`"
            changes.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
        before = versions(changes)
        reading(changes, schema, FLOWS["type 2"])
        with pytest.raises(ColumnTypeChanged, match=what) as caught:
            changes.apply([])
        assert "--full-refresh" in caught.value.remedy
        assert ("delta.enableTypeWidening" in caught.value.remedy) == (not widens)
        assert versions(changes) == before
