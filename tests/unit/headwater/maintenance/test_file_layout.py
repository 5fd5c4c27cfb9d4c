"""Files are rewritten when it is due, and no reader sees it."""

from __future__ import annotations

import json

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.unit.headwater.metrics.conftest import write_rows
from tests.unit.headwater_spark.written_table import commit

from headwater.delta_log.versions import read_commit
from headwater.maintenance.chore import Engine
from headwater.maintenance.file_layout import (
    _TARGET_BYTES,
    Optimize,
    _changed_since_rewrite,
    _File,
    open_table,
)


def test_the_plan_changes_nothing(kept):
    """Small files are counted with their rows and bytes, and stay without --yes."""
    table = kept.pipeline.table("bronze")
    for value in range(4):
        write_rows(table, value)
    code, answer = kept.call("--only", "optimize")
    (step,) = answer["plan"]["steps"]
    assert (code, answer["state"]) == (0, "PLANNED")
    assert (step["subject"], step["files"], step["rows"], step["engine"]) == ("bronze", 5, 6, "here")
    assert DeltaTable(str(table)).version() == 4


def test_small_files_become_one(kept):
    """The rows stay, the transactions stay, the commit changes no data, and a second run finds nothing."""
    import pyarrow as pa

    table = kept.pipeline.table("bronze")
    for batch in range(4):
        known = CommitProperties(app_transactions=[Transaction("orders.bronze@0", batch)])
        write_deltalake(str(table), pa.table({"id": [batch]}), mode="append", commit_properties=known)
    code, answer = kept.call("--only", "optimize", "--yes")
    opened = DeltaTable(str(table))
    assert (code, [step["state"] for step in answer["steps"]]) == (0, ["COMPLETED"])
    assert len(opened.file_uris()) == 1
    assert opened.transaction_version("orders.bronze@0") == 3
    assert not read_commit(table, opened.version()).changes_data
    assert kept.call("--only", "optimize", "--yes")[1]["steps"] == []


def test_z_order_follows_the_property(tmp_path):
    """The seeds' property names the columns; it is done again only after rows have come."""
    table = tmp_path / "t"
    chore = Optimize("t", table, {"pipelines.autoOptimize.zOrderCols": "ID"})
    write_rows(table, 3, 1)
    assert chore.look() is None
    write_rows(table, 2)
    step = chore.look()
    assert step.what == "z-order by id"
    chore.carry_out(step, None)
    assert chore.look() is None
    write_rows(table, 4)
    assert chore.look().files == 2


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"pipelines.autoOptimize.zOrderCols": "nope"}, "no such column"),
        ({"pipelines.autoOptimize.managed": "false"}, "autoOptimize.managed is false"),
    ],
)
def test_what_is_left_alone(tmp_path, properties, why):
    """A column that is not there, and a table whose owner looks after it, are named."""
    write_rows(tmp_path / "t", 1)
    assert why in Optimize("t", tmp_path / "t", properties).look().why


def test_features_that_delta_rs_does_not_write_are_sparks(tmp_path):
    """A table with row tracking is planned for Spark."""
    import pyarrow as pa

    table = tmp_path / "t"
    DeltaTable.create(
        str(table),
        pa.schema([("id", pa.int64())]),
        configuration={"delta.enableChangeDataFeed": "true", "delta.minWriterVersion": "7"},
    )
    for value in range(4):
        write_rows(table, value)
    assert Optimize("t", table, {}).look().engine is Engine.HERE
    log = table / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('"changeDataFeed"', '"changeDataFeed","rowTracking"'))
    assert Optimize("t", table, {}).look().engine is Engine.SPARK


@pytest.mark.parametrize(
    ("ordered", "wanted", "again"),
    [
        (["a"], ["a"], False),
        (["b"], ["a"], True),
        (["a", "b"], ["a"], True),
        ([], ["a"], True),
        ([], None, False),
        (["a"], None, True),
    ],
)
def test_an_order_of_other_columns_is_none(tmp_path, ordered, wanted, again):
    """Files that were put together, or sorted by something else, are still to be sorted."""
    commit(tmp_path)
    head = commit(tmp_path, operation="OPTIMIZE", operationParameters={"zOrderBy": json.dumps(ordered)})
    assert _changed_since_rewrite(tmp_path, head, wanted) is again
    head = commit(tmp_path, operation="SET TBLPROPERTIES")
    assert _changed_since_rewrite(tmp_path, head, wanted) is again


def test_rows_are_counted_where_each_file_says_how_many(tmp_path):
    """Of files without statistics among others, no number of rows is given: it would be too small."""
    write_rows(tmp_path, 1)
    opened, chore = open_table(tmp_path), Optimize("t", tmp_path, {})
    counted, silent = _File((), 1, 2), _File((), 1, None)
    assert chore._step(opened, [counted, counted], "put together").rows == 4
    assert chore._step(opened, [counted, silent], "put together").rows is None


def test_a_file_of_the_wanted_size_is_not_small(tmp_path):
    """Files that are as large as they shall be are not rewritten, and one byte less makes them small."""
    write_rows(tmp_path, 1)
    opened, chore = open_table(tmp_path), Optimize("t", tmp_path, {})
    assert chore._compacted(opened, [_File((), _TARGET_BYTES, 1)] * 4) is None
    assert chore._compacted(opened, [_File((), _TARGET_BYTES - 1, 1)] * 4).files == 4
