"""Rows on the driver are the rows that Spark has: whatever their types, and whoever wrote the table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from headwater_spark.auto_cdc.on_driver.look_up import has_all_keys, rows_about
from headwater_spark.auto_cdc.on_driver.rows import (
    Rows,
    is_atomic,
    is_plain,
    local_frame,
    local_if_small,
    on_driver,
)
from headwater_spark.auto_cdc.side_table import SideTable
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.session_settings import session_settings

VALUES = """
SELECT id, cast(id AS STRING) AS name, timestamp'9999-12-31 23:59:59.999999' AS latest,
  timestamp'0001-01-01 00:00:00.000001' AS earliest, date'1582-10-10' AS day, cast(id AS DECIMAL(38, 18)) AS amount,
  named_struct('a', id, 'b', array(timestamp'2024-03-31 02:30:00')) AS part, map('k', id) AS tags, cast(NULL AS BINARY) AS raw
FROM range(10)
"""


def test_rows_come_through(spark: SparkSession):
    """Times of any year, dates that one calendar lacks, decimals and nested values are the same after the driver had them."""
    for zone in ("UTC", "Europe/Berlin"):
        with session_settings(spark, {"spark.sql.session.timeZone": zone}):
            rows = spark.sql(VALUES)
            local = on_driver(rows)
            assert local.is_local
            assert local.frame.schema == rows.schema
            as_json = "to_json(struct(*)) AS row"
            assert local.frame.selectExpr(as_json).collect() == rows.selectExpr(as_json).collect()


def test_empty_chunks(spark: SparkSession):
    """Rows behind chunks without any, as a scan of several files gives them, come through."""
    chunks = [pa.table({"id": pa.array(ids, pa.int64())}) for ids in ([], [1, 2], [], [], [3], [])]
    frame = local_frame(spark, pa.concat_tables(chunks), spark.range(0).schema)
    assert [row.id for row in frame.collect()] == [1, 2, 3]


def test_what_is_held(spark: SparkSession):
    """Few rows of plain types are held on the driver; more rows, and types that readers spell differently, are not."""
    few = spark.range(5).persist()
    assert local_if_small(few, 5).is_local
    assert not local_if_small(few, 10**6).is_local
    few.unpersist()
    kinds = spark.sql(
        "SELECT parse_json('1') AS v, 'a' COLLATE UTF8_LCASE AS c, array(1) AS a, 'a' AS s"
    ).schema
    assert [is_plain(field.dataType) for field in kinds] == [False, False, True, True]
    assert [is_atomic(field.dataType) for field in kinds] == [False, False, False, True]


def test_a_table_is_asked_without_spark(spark: SparkSession, tmp_path: Path):
    """The rows of the asked keys come back as Spark wrote them, and those alone; a table of another kind is Spark's to read."""
    path = tmp_path / "table"
    spark.sql(VALUES).repartition(3, "id").write.format("delta").save(str(path))
    DeltaTable.forPath(spark, str(path)).delete("id = 3")
    asking = pa.table({"id": pa.array([2, 3, 7, 99], pa.int32()), "name": ["2", "3", "8", None]})
    local = rows_about(spark, path, ["id"], asking)
    assert local is not None
    as_json = "to_json(struct(*)) AS row"
    wanted = spark.read.format("delta").load(str(path)).where("id IN (2, 7)")
    assert (
        local.orderBy("id").selectExpr(as_json).collect()
        == wanted.orderBy("id").selectExpr(as_json).collect()
    )
    both = rows_about(spark, path, ["id", "name"], asking)
    assert both is not None
    assert [row.id for row in both.select("id").collect()] == [2]
    nothing = rows_about(spark, path, ["id"], pa.table({"id": [4]}))
    assert nothing is not None
    none = rows_about(spark, path, ["id", "name"], pa.table({"id": [4], "name": ["5"]}))
    assert none is not None
    assert (nothing.count(), none.count()) == (1, 0)
    parted = tmp_path / "parted"
    spark.range(4).selectExpr("id", "id % 2 AS part").write.partitionBy("part").format("delta").save(
        str(parted)
    )
    assert rows_about(spark, parted, ["id"], asking) is None
    # No key that files can be found by.
    assert rows_about(spark, path, ["amount"], pa.table({"amount": [1.0]})) is None


def test_keys_that_a_table_certainly_has(spark: SparkSession, tmp_path: Path):
    """All keys have a row, whole keys and not their parts, and no deleted row counts; a table that can't be looked through is not known to have any."""
    path = tmp_path / "table"
    rows = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS t(id, name)")
    rows.selectExpr("*", "id * 0.5D AS size").write.format("delta").save(str(path))
    DeltaTable.forPath(spark, str(path)).delete("id = 3")

    def known(**keys: list[object]) -> bool:
        return has_all_keys(path, list(keys), pa.table(keys))

    assert known(id=[1, 2, 2])
    assert known(id=[1, 2], name=["a", "b"])
    assert not known(id=[1, 3])
    assert not known(id=[1, 2], name=["b", "a"])
    assert not known(size=[0.5])
    assert has_all_keys(path, ["id"], pa.table({"id": pa.array([], pa.int32())}))
    DeltaTable.forPath(spark, str(path)).upgradeTableProtocol(3, 7)
    DeltaTable.forPath(spark, str(path)).addFeatureSupport("deletionVectors")
    assert known(id=[1, 2])
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    DeltaTable.forPath(spark, str(path)).delete("id = 2")
    assert known(id=[1])
    assert not known(id=[2])


def test_two_writers_remember_as_one(spark: SparkSession, tmp_path: Path):
    """A side table that Spark began takes rows without Spark, and Spark reads all; a commit of either can be taken back."""
    metadata = json.dumps({"pipeline": "p", "flow": "f", "epoch": 0, "batch": 1})
    transaction = BatchTransaction("p.f@0", 1, metadata)
    for first in ("spark", "driver"):
        side = SideTable(spark, tmp_path / first)
        rows = spark.sql("SELECT id AS key, timestamp'9999-12-31 00:00:00' AS __hw_at FROM range(3)")
        if first == "spark":
            side.append(rows, transaction)
        more = on_driver(rows.selectExpr("key + 10 AS key", "__hw_at"))
        side.append_local(more, transaction)
        side.append_local(Rows(more.frame, more.table.slice(0, 0)), transaction)
        known = side.read()
        assert known is not None
        expected = 6 if first == "spark" else 3
        assert known.where("__hw_at = timestamp'9999-12-31 00:00:00' AND __hw_recorded_at <= now()").count() == expected  # fmt: skip
        side.recover(tmp_path / "no table has the batch")
        known = side.read()
        assert known is not None
        assert known.count() == expected - 3
