"""The side table around crashes: which commit is taken back, and when what it remembers goes; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import types as T
from tests.unit.headwater_spark import plain_columns, written_table
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater_spark.auto_cdc import side_table
from headwater_spark.auto_cdc.change_metrics import change_metrics, with_counts
from headwater_spark.auto_cdc.on_driver.rows import Rows
from headwater_spark.auto_cdc.side_table import RECORDED_AT, SideTable
from headwater_spark.delta_writes.batch_commits import BatchCommit
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

SCHEMA = T.StructType([T.StructField("key", T.IntegerType()), T.StructField("__hw_at", T.IntegerType())])


class Spark:
    """In the place of Delta's table of Spark: the versions restored to, and the conditions of deletes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Any] = []
        table = SimpleNamespace(restoreToVersion=self.calls.append, delete=self.calls.append)
        monkeypatch.setattr(side_table, "DeltaTable", SimpleNamespace(forPath=lambda _session, _path: table))


def side_of(path: Path) -> SideTable:
    session: Any = None
    return SideTable(session, path)


def transaction(batch: int, flow: str = "flow", epoch: int = 0) -> BatchTransaction:
    metadata = {"pipeline": "p", "flow": flow, "epoch": epoch, "batch": batch}
    return BatchTransaction(f"p.{flow}@{epoch}", batch, json.dumps(metadata))


def rows(*keys: int) -> Rows:
    frame: Any = SimpleNamespace(schema=SCHEMA)
    table = pa.table({"key": pa.array(keys, pa.int32()), "__hw_at": pa.array(range(len(keys)), pa.int32())})
    return Rows(frame, table)


def test_what_the_target_never_got_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The last commit is reverted where the target has neither its batch nor a later one of that flow and epoch."""
    side, target, spark = side_of(tmp_path / "side"), tmp_path / "target", Spark(monkeypatch)
    side.recover(target)
    side.append_local(rows(1), transaction(0))
    side.append_local(rows(2), transaction(1))
    # The first version has no rows, so that the first batch can be taken back, too.
    assert [DeltaTable(str(side.path), version=v).to_pyarrow_table().num_rows for v in range(3)] == [0, 1, 2]
    written_table.commit(target, transactions={"p.flow@0": 1})
    side.recover(target)
    assert spark.calls == []
    side.append_local(rows(3), transaction(2))
    side.recover(target)
    assert spark.calls == [2]
    for other in (transaction(1, flow="other"), transaction(1, epoch=1)):
        side.append_local(rows(4), other)
        side.recover(target)
    assert spark.calls == [2, 3, 4]
    written_table.commit(target, transactions={"p.flow@1": 5})
    side.recover(target)
    assert spark.calls == [2, 3, 4]


def test_commits_without_a_batch_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What compacts, widens or restores names no batch, and is never taken back; nor is the table's own first version."""
    spark = Spark(monkeypatch)
    for number, word in enumerate(
        (
            None,
            "no json",
            "[]",
            "{}",
            {"pipeline": "p", "flow": "f"},
            {"pipeline": "p", "flow": "f", "epoch": "x"},
        )
    ):
        path = tmp_path / str(number)
        written_table.commit(path)
        written_table.commit(path, metadata=word)
        side_of(path).recover(tmp_path / "target")
    written_table.commit(tmp_path / "first", metadata={"pipeline": "p", "flow": "f", "epoch": 0, "batch": 0})
    side_of(tmp_path / "first").recover(tmp_path / "target")
    assert spark.calls == []
    written_table.commit(tmp_path / "first", metadata={"pipeline": "p", "flow": "f", "epoch": 0})
    side_of(tmp_path / "first").recover(tmp_path / "target")
    assert spark.calls == [0]


def test_what_is_old_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is deleted while the oldest row is younger than the retention; what goes meets the condition, too."""
    spark, side = Spark(monkeypatch), side_of(tmp_path / "side")
    side.expire(timedelta(0), "true")
    side.append_local(rows(), transaction(0))
    assert not side.exists
    side.append_local(rows(1), transaction(0))
    side.expire(timedelta(hours=1), "true")
    assert spark.calls == []
    side.expire(timedelta(0), "__hw_deleted")
    (condition,) = spark.calls
    assert condition.startswith(f"{RECORDED_AT} < timestamp'")
    assert condition.endswith("+00:00' AND (__hw_deleted)")


def test_counts_of_a_batch():
    """Superseded events are those that the reduction left out; late ones had no effect; a history has no late events."""
    batch: Any = SimpleNamespace(received=10, remaining=7, ties=2)
    for upserts, merged, late in ((5, 3, 2), (5, 5, 0), (5, 6, 0), (5, None, 5), (None, 1, 0)):
        counted = with_counts(transaction(1), batch, upserts=upserts, tombstones=4)
        commit = BatchCommit(1, 0, 0, upserted=merged, metadata=json.loads(counted.user_metadata))
        assert change_metrics(commit) == {
            "num_late_events": late, "num_superseded_events": 3, "num_tied_events": 2, "num_tombstones": 4,
        }  # fmt: skip
    assert change_metrics(None) == change_metrics(BatchCommit(1, 0, 0)) == {}


@pytest.mark.parametrize(
    ("truncate", "keys", "about"), [(None, "keys", "some rows"), ("an expression", None, "all rows")]
)
def test_a_flow_with_truncates_looks_at_all_that_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truncate: str | None, keys: str | None, about: str
):
    """The last truncate is a row without a key: it is not among those of a batch's keys."""
    side = side_of(tmp_path / "side")
    side.append_local(rows(1), transaction(0))
    monkeypatch.setattr(side_table, "keys_about", lambda *_: "keys")
    monkeypatch.setattr(side_table, "rows_about", lambda *_: "some rows")
    monkeypatch.setattr(SideTable, "read", lambda _: "all rows")
    columns = SimpleNamespace(keys=("key",), truncate=truncate)
    batch: Any = SimpleNamespace(columns=columns, local=rows(1).table)
    assert (side.remembered_keys(batch), side.rows_about(batch)) == (keys, about)


@pytest.mark.parametrize(
    ("metadata", "batch"),
    [
        ({"pipeline": "p", "flow": "f", "epoch": 2, "batch": 7}, ("p.f@2", 7)),
        ({"pipeline": "p", "flow": "f", "epoch": 0}, ("p.f@0", 0)),  # a flow that runs once
        ({"pipeline": "p", "flow": "f"}, None),
        ([], None),
    ],
)
def test_the_batch_that_a_commit_names(metadata: Any, batch: tuple[str, int] | None):
    """As the target's commit names it; a commit that names none was made by no batch."""
    assert side_table._batch_of(json.dumps(metadata)) == batch


def test_the_oldest_row_decides_whether_anything_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows of many moments lie in files of their own."""
    spark, side = Spark(monkeypatch), side_of(tmp_path / "side")
    side.append_local(rows(1), transaction(0))
    names = [
        name for name in DeltaTable(str(side.path)).to_pyarrow_table().column_names if name != RECORDED_AT
    ]
    old = rows(2).table.append_column(
        RECORDED_AT, pa.array([datetime.now(UTC) - timedelta(days=3)], pa.timestamp("us", "UTC"))
    )
    write_deltalake(str(side.path), old.select([*names, RECORDED_AT]), mode="append")
    side.expire(timedelta(days=4), "true")
    assert spark.calls == []
    side.expire(timedelta(days=2), "true")
    assert len(spark.calls) == 1


def test_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows with the keys of the changes are replaced, or deleted, in one commit that names the batch; NULL is a key, of the last truncate."""
    plain_functions(monkeypatch, side_table)
    said: dict[str, Any] = {}
    conf = Conf()

    class Merge:
        def __getattr__(self, name: str) -> Any:
            def say(*given: Any, **named: Any) -> Merge:
                said[name] = (given, named)
                return self

            return say

        def execute(self) -> None:
            said["settings"] = dict(conf.now)

    monkeypatch.setattr(side_table, "DeltaTable", SimpleNamespace(forPath=lambda *_: Merge()))
    monkeypatch.setattr(SideTable, "_make", lambda *_: None)
    session: Any = SimpleNamespace(conf=conf)
    changes: Any = Frame([], ["key", "__hw_at", "__hw_removed"], session=session)
    met = plain_columns.lit(True)
    SideTable(session, tmp_path).merge(Rows(changes), ["key", "__hw_at"], transaction(3), met)  # type: ignore[arg-type]
    (source, on), _ = said["merge"]
    both = "`t`.`key` <=> `s`.`key` AND `t`.`__hw_at` <=> `s`.`__hw_at`"
    assert on.of({both: True}) is True
    assert on.of({both: False}) is False
    assert said["whenMatchedDelete"][0] == ("s.__hw_removed",)
    assert list(said["whenMatchedUpdate"][1]["set"]) == ["`key`", "`__hw_at`", f"`{RECORDED_AT}`"]
    assert said["whenNotMatchedInsert"][0] == ("NOT s.__hw_removed",)
    assert json.loads(said["settings"]["spark.databricks.delta.commitInfo.userMetadata"])["batch"] == 3
    assert conf.now == {}
    assert source is not None


INT, LONG = T.IntegerType(), T.LongType()


@pytest.mark.parametrize(
    ("stored", "wanted", "steps"),
    [
        (None, LONG, []), (INT, INT, []), (LONG, INT, []), (T.MapType(INT, INT), T.ArrayType(INT), []),
        (INT, LONG, ["a row of struct<a:bigint>"]),
        (T.DateType(), T.TimestampNTZType(), ["timestampNtz", "a row of struct<a:timestamp_ntz>"]),
    ],
)  # fmt: skip
def test_remembered_rows_are_widened(
    monkeypatch: pytest.MonkeyPatch, stored: T.DataType | None, wanted: T.DataType, steps: list[str]
):
    """Only where their type does not hold the new one, and can be widened to it; otherwise nothing is written."""
    done: list[str] = []

    class Rows(SimpleNamespace):
        def withColumn(self, _: str, value: Any) -> Any:  # noqa: N802 - Spark's name
            writer = SimpleNamespace(save=lambda _: done.append(value))
            for name in ("format", "mode", "option"):
                setattr(writer, name, lambda *_: writer)
            return SimpleNamespace(write=writer)

    def row(kind: T.DataType) -> T.StructType:
        return T.StructType([T.StructField("a", kind)])

    schema = T.StructType([] if stored is None else [T.StructField(side_table.ROW, row(stored))])
    monkeypatch.setattr(SideTable, "read", lambda _: Rows(columns=schema.names, schema=schema))
    table = SimpleNamespace(addFeatureSupport=done.append)
    monkeypatch.setattr(side_table, "DeltaTable", SimpleNamespace(forPath=lambda *_: table))
    monkeypatch.setattr(side_table, "F", SimpleNamespace(col=lambda _: "a row"))
    monkeypatch.setattr(side_table, "fitted", lambda value, _, wider: f"{value} of {wider.simpleString()}")
    side_of(Path("side")).widen(row(wanted))
    assert done == steps


def test_nothing_is_remembered_of_a_first_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No table is looked at, also of a flow with truncates: the answer has the keys' columns and no row."""
    monkeypatch.setattr(side_table, "keys_about", None)
    columns = SimpleNamespace(keys=("key",), truncate="an expression")
    batch: Any = SimpleNamespace(columns=columns, local=rows(1, 2).table)
    known = side_of(tmp_path / "side").remembered_keys(batch)
    assert (known.column_names, known.num_rows) == (["key"], 0)


@pytest.mark.parametrize(("name", "properties"), [("key", {}), ("a key, with blanks", side_table.BY_NAME)])
def test_the_first_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, properties: dict[str, str]
):
    """It has no rows; columns whose names a file can't have are mapped from the beginning."""
    said: dict[str, str] = {}
    made: list[Any] = []

    class Builder:
        def location(self, _: str) -> Builder:
            return self

        def property(self, key: str, value: str) -> Builder:
            said[key] = value
            return self

        def addColumns(self, schema: T.StructType) -> Builder:  # noqa: N802 - Delta's name
            made.append(schema)
            return self

        def execute(self) -> None:
            made.append("executed")

    monkeypatch.setattr(side_table, "DeltaTable", SimpleNamespace(createIfNotExists=lambda _: Builder()))
    monkeypatch.setattr(side_table, "remove_empty_logs", lambda *_: None)
    side_of(tmp_path)._make(T.StructType([T.StructField(name, T.LongType(), nullable=False)]))
    assert said == properties
    assert made == [T.StructType([T.StructField(name, T.LongType())]), "executed"]
