"""How a table is emptied for a full refresh, and with what a declared one is created."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from delta.tables import IdentityGenerator
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType
from tests.unit.headwater_spark.recorded_writes import RecordedFrame, recorded_session
from tests.unit.headwater_spark.update_parts import dataset
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import Dataset
from headwater.errors import FlowFailed
from headwater_spark.delta_writes import tables as module
from headwater_spark.delta_writes.tables import DECLARED, EXPRESSION, create_table, delete_rows, empty_table
from headwater_spark.plans.schema_text import GENERATED, IDENTITY

ID = StructType([StructField("id", LongType())])
NAMED = StructType([*ID, StructField("name", StringType())])
NUMBERS = {"start": 5, "step": 2, "given": False}


@pytest.mark.parametrize(
    ("declared", "columns", "done"),
    [
        (dataset(schema="id long"), ID, "delete"), (dataset(schema="id long"), NAMED, "reshape"),
        (dataset(schema="id long", partition_columns=("id",)), ID, "reshape"), (dataset(), ID, "reshape"),
    ],
)  # fmt: skip
def test_emptying(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, declared: Dataset, columns: StructType, done: str
):
    """In one commit with the update's metadata: rows alone go from a table of the declared shape, others get it with that."""
    steps: list[Any] = []
    monkeypatch.setattr(module, "delete_rows", lambda *given: steps.append(("delete", *given)))
    monkeypatch.setattr(module, "reshape_table", lambda *given: steps.append(("reshape", *given)))
    spark: Any = "spark"
    empty_table(spark, declared, tmp_path / "none", columns, "m")
    assert steps == []
    commit(tmp_path / "t")
    empty_table(spark, declared, tmp_path / "t", columns, "m")
    more = (
        (spark, tmp_path / "t", "m") if done == "delete" else (spark, declared, tmp_path / "t", columns, "m")
    )
    assert steps == [(done, *more)]


def test_deleting_all_rows():
    """The statement names no other table, and the commit's metadata is no setting of the session that others have."""
    session = recorded_session()
    own = SimpleNamespace(conf=recorded_session().conf, said=[])
    own.sql = own.said.append
    session.newSession = lambda: own
    delete_rows(session, Path("/w/t"), "m")  # type: ignore[arg-type]
    assert own.said == ["DELETE FROM delta.`/w/t`"]
    assert own.conf.now == {"spark.databricks.delta.commitInfo.userMetadata": "m"}
    assert session.conf.now == {}


@pytest.mark.parametrize("partitions", [(), ("id",)])
def test_another_shape(tmp_path: Path, partitions: tuple[str, ...]):
    """No row, the declared columns and partitions, and the metadata, in one overwrite; Delta keeps a computed column by its own key."""
    rows, shapes = RecordedFrame(), list[Any]()
    spark: Any = SimpleNamespace(createDataFrame=lambda data, shape: shapes.append((data, shape)) or rows)
    computed = StructType([*ID, StructField("day", StringType(), True, {GENERATED: "f(id)", "comment": "c"})])
    module.reshape_table(spark, dataset(partition_columns=partitions), tmp_path, computed, "m")
    (written,) = rows.writes
    assert (written.words, written.partitions, written.path) == (
        {"format": "delta", "mode": "overwrite"}, partitions, str(tmp_path),
    )  # fmt: skip
    assert written.options_given == {"overwriteSchema": "true", "userMetadata": "m"}
    ((data, shape),) = shapes
    assert (data, shape["day"].metadata) == ([], {EXPRESSION: "f(id)", "comment": "c"})


@pytest.mark.parametrize(
    ("field", "what"),
    [
        (StructField("name", StringType(), nullable=False), "NOT NULL"),
        (StructField("name", LongType(), True, {IDENTITY: NUMBERS}), "an identity"),
    ],
)
def test_a_shape_that_only_a_new_table_has(tmp_path: Path, field: StructField, what: str):
    """Refused with the column, before anything is written; what a query happens never to give as NULL is no promise."""
    columns, nothing, rows = StructType([*ID, field]), SimpleNamespace(), RecordedFrame()
    with pytest.raises(FlowFailed, match=f"can't make its column 'name' {what}"):
        module.reshape_table(nothing, dataset(schema="id long"), tmp_path, columns, "m")  # type: ignore[arg-type]
    spark: Any = SimpleNamespace(createDataFrame=lambda *_: rows)
    module.reshape_table(spark, dataset(), tmp_path, columns, "m")
    assert len(rows.writes) == 1


class Builder:
    """A table that is being created: what is asked of it, in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: self.asked.append((name, *given, named)) or self


def created(monkeypatch: pytest.MonkeyPatch, declared: Dataset, columns: StructType) -> list[tuple[Any, ...]]:
    """What a new table is made with, beyond its folder."""
    builder = Builder()
    monkeypatch.setattr(module, "DeltaTable", SimpleNamespace(createIfNotExists=lambda _: builder))
    create_table("spark", declared, Path("/t"), columns)  # type: ignore[arg-type]
    assert builder.asked[0] == ("location", "/t", {})
    assert builder.asked[-1] == ("execute", {})
    return builder.asked[1:-1]


def test_a_new_table(monkeypatch: pytest.MonkeyPatch):
    """It has what is declared, and a note of that; columns that Delta makes have their expression, or their numbers."""
    columns = StructType([
        StructField("id", LongType(), False, {"comment": "c"}), StructField("day", StringType(), True, {GENERATED: "f(id)"}),
        StructField("n", LongType(), True, {IDENTITY: NUMBERS}), StructField("m", LongType(), True, {IDENTITY: {**NUMBERS, "given": True}}),
    ])  # fmt: skip
    declared = dataset(
        schema="x",
        comment="t",
        table_properties={"a": "1"},
        cluster_columns=("ID",),
        partition_columns=("day",),
    )
    asked = created(monkeypatch, declared, columns)
    generator = IdentityGenerator(5, 2)
    assert [call[1:] for call in asked if call[0] == "addColumn"] == [
        ("id", LongType(), {"nullable": False, "generatedAlwaysAs": None, "comment": "c"}),
        ("day", StringType(), {"nullable": True, "generatedAlwaysAs": "f(id)", "comment": None}),
        ("n", LongType(), {"nullable": True, "generatedAlwaysAs": generator, "comment": None}),
        ("m", LongType(), {"nullable": True, "generatedByDefaultAs": generator, "comment": None}),
    ]
    assert [call[:-1] for call in asked if call[0] != "addColumn"] == [
        ("comment", "t"), ("property", "a", "1"), ("property", DECLARED, '["a", "comment"]'),
        ("partitionedBy", "day"), ("clusterBy", "`ID`"),
    ]  # fmt: skip


def test_a_new_table_without_a_declaration(monkeypatch: pytest.MonkeyPatch):
    """Elements of a query's arrays may be NULL, which Delta could not change later; a name that it can't store is mapped."""
    columns = StructType([StructField("a b", ArrayType(LongType(), containsNull=False))])
    (column, *others) = created(monkeypatch, dataset(), columns)
    assert column[2] == ArrayType(LongType())
    assert [call[:-1] for call in others] == [("property", *one) for one in module.BY_NAME.items()]
