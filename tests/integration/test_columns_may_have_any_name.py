"""Names of columns with dots, spaces and quotes work as keys, sequences, windows, rules and columns of every kind of table.

So do many columns, and values that a query never gives as NULL within arrays.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.in_step import Share, Steps, in_step

SOURCE = """
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

COLUMNS = StructType([
    StructField("my key", StringType()), StructField("k.k", StringType()), StructField("v v", LongType()),
    StructField("s.q", LongType()), StructField("ts", TimestampType()), StructField("it's; \\\\"x\\\\"", StringType()),
])

@dp.temporary_view
def events():
    return spark.readStream.schema(COLUMNS).json(LANDING)

@dp.table(partition_cols=["k.k"])
@dp.expect_or_quarantine("it's \\\\"few\\\\"; --", "`v v` > 0")
def judged():
    return dp.read_stream("events")

@dp.table
def windows():
    late = dp.read_stream("events").withWatermark("ts", "1 minute")
    return late.groupBy(F.window("ts", "1 hour").alias("w.w"), "`k.k`").agg(F.sum("`v v`").alias("sum.v"))

@dp.table(replace_using=["k.k"], sequence_by="s.q")
def newest():
    parts = F.array(F.struct(F.lit(1).alias("one")))
    return dp.read_stream("events").select("`k.k`", "`s.q`", "`v v`", parts.alias("parts"))

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow("latest", "events", ["my key", "k.k"], F.struct("`s.q`", "`v v`"), apply_as_deletes="`v v` < 0",
    except_column_list=["ts"])

# Not rows for the driver, and so many columns that Spark's own conditions about them did not fit into its memory. Of events that say
# the same, whole rows are remembered.
@dp.temporary_view
def wide_events():
    return dp.read_stream("events").select("*", *[F.array(F.lit(n), F.signum("`v v`")).alias(f"a a.{n}") for n in range(22)])

dp.create_streaming_table("wide")
dp.create_auto_cdc_flow("wide", "wide_events", ["my key"], "`s.q`", apply_as_deletes="`v v` < 0", stored_as_scd_type=2,
    except_column_list=["v v", "s.q", "ts", "it's; \\\\"x\\\\""])

@dp.materialized_view(refresh_policy="incremental")
def totals():
    return dp.read("judged").groupBy("`k.k`").agg(F.sum("`v v`").alias("sum.v"), F.max("`it's; \\\\"x\\\\"`").alias("m'm"))
""".replace("\\\\", "\\")


def event(key: str, kind: str, value: int, sequence: int, hour: int) -> dict[str, object]:
    at = f"2026-01-01T{hour:02d}:30:00Z"
    return {
        "my key": key,
        "k.k": kind,
        "v v": value,
        "s.q": sequence,
        "ts": at,
        'it\'s; "x"': f"{key}{sequence}",
    }


def every_kind_of_table(case: Share) -> Steps:
    """After two updates, with an older event that comes late and a delete, each table is what one batch would give."""
    case.rewrite(SOURCE)
    case.land([event("a a", "p/q", 5, 2, 1), event("b", "c=d", -1, 3, 1), event("c", "c=d", 7, 1, 2)])
    report = yield
    assert report.state == "COMPLETED", report.error
    case.land([event("a a", "p/q", 4, 1, 3), event("b", "c=d", 2, 2, 3), event("c", "c=d", -4, 4, 4)])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert (report["judged"].output_rows, report["judged"].quarantined_rows) == (2, 1)
    assert case.rows("judged", "`my key`, `v v`") == [("a a", 4), ("a a", 5), ("b", 2), ("c", 7)]
    assert case.rows("windows", "`k.k`, `sum.v`", "2, 1") == [
        ("c=d", -1),
        ("c=d", 2),
        ("p/q", 4),
        ("p/q", 5),
        ("c=d", 7),
    ]
    assert case.rows("newest", "`k.k`, `s.q`") == [("c=d", 4), ("p/q", 2)]
    assert case.rows("latest", "`my key`, `v v`") == [("a a", 5)]
    assert case.rows("wide", "`my key`, __START_AT, __END_AT", "1, 2") == [
        ("a a", 1, None), ("b", 2, 3), ("c", 1, 4),
    ]  # fmt: skip
    assert case.rows("totals", "`k.k`, `sum.v`, `m'm`") == [("c=d", 9, "c1"), ("p/q", 9, "a a2")]


# The names of columns come from a file, so that an edit brings another one; files of a cloudFiles folder bring theirs.
LATER = """
from pathlib import Path

NAMES = Path(LANDING, "names.txt").read_text().split(",")
READ = spark.readStream.schema("id STRING, n LONG, q LONG").json(LANDING + "/rows")
NAMED = [F.col("n").alias(name) for name in NAMES]

@dp.table
def filed():
    files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return files.load(LANDING + "/files")

@dp.table(table_properties={"delta.enableChangeDataFeed": "true"})
def appended():
    return READ.select("id", "q", *NAMED)

@dp.table
def followed():
    return spark.readStream.option("readChangeFeed", "true").table("appended").drop("_change_type", "_commit_version", "_commit_timestamp")

@dp.table
def passed_on():
    return dp.read_stream("filed")

@dp.materialized_view(refresh_policy="incremental")
def viewed():
    return dp.read("appended").groupBy("id").agg(*[F.sum("`" + name + "`").alias("sum " + name if " " in name else name) for name in NAMES])

@dp.temporary_view
def events():
    return READ.select("id", "q", F.array("n").alias("list"), *NAMED)

for kind, merged in enumerate(("merged_1", "merged_2"), start=1):
    dp.create_streaming_table(merged)
    dp.create_auto_cdc_flow(merged, "events", ["id"], "q", apply_as_deletes="n < 0", stored_as_scd_type=kind)

@dp.materialized_view(table_properties={"delta.columnMapping.mode": "none"})
def declared():
    return spark.range(1).select(F.col("id").alias(NAMES[-1]))
"""


def names_that_come_later(case: Share) -> Steps:
    """A table that was made without such a name takes one that an edit or a file brings, and whoever reads it goes on; unless its
    declaration says otherwise."""
    case.rewrite(LATER)
    (case.landing / "names.txt").write_text("n")
    case.land([{"id": "a", "n": 1, "q": 2}, {"id": "b", "n": -1, "q": 3}], "rows")
    case.land([{"id": 1}], "files")
    report = yield
    assert report.state == "COMPLETED", report.error
    (case.landing / "names.txt").write_text("n,n (n)")
    case.land([{"id": "a", "n": 5, "q": 3}, {"id": "b", "n": 4, "q": 2}], "rows")
    case.land([{"id": 2, "un it": 3}], "files")
    report = yield
    assert report.statuses == {
        name: "FAILED" if name == "declared" else "COMPLETED" for name in report.statuses
    }, report.error
    case.land([{"id": "b", "n": 6, "q": 4}], "rows")
    case.land([{"id": 3, "un it": 4}], "files")
    assert (yield).statuses == report.statuses
    rows = [("a", 1, None), ("a", 5, 5), ("b", -1, None), ("b", 4, 4), ("b", 6, 6)]
    for name in ("appended", "followed"):
        assert case.rows(name, "id, n, `n (n)`") == rows, name
    for name in ("filed", "passed_on"):
        assert case.rows(name, "id, `un it`") == [(1, None), (2, 3), (3, 4)], name
    assert case.rows("viewed", "id, n, `sum n (n)`") == [("a", 6, 5), ("b", 9, 10)]
    assert case.rows("merged_1", "id, n, `n (n)`") == [("a", 5, 5), ("b", 6, 6)]
    assert case.rows("merged_2", "id, n, `n (n)`, __END_AT", "1, 2") == [
        ("a", 1, None, 3),
        ("a", 5, 5, None),
        ("b", 4, 4, 3),
        ("b", 6, 6, None),
    ]


NAMES = (
    "events", "judged", "windows", "newest", "latest", "wide_events", "wide", "totals",
    "filed", "appended", "followed", "passed_on", "viewed", "merged_1", "merged_2", "declared",
)  # fmt: skip


@pytest.mark.usefixtures("pipeline")
def test_names_that_are_there_and_that_come_later(tmp_path: Path):
    """In every kind of table: what the docstrings say."""
    in_step(tmp_path, NAMES, [every_kind_of_table, names_that_come_later])
