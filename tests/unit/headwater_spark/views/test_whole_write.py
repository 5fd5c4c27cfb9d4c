"""When all rows of a view are written by naming the files that go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructField, StructType

from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.views import whole_write
from headwater_spark.views.whole_write import WholeWrite, same_columns


def schema(*fields: tuple[str, DataType, str]) -> StructType:
    """Columns with their comments."""
    return StructType(
        [StructField(name, kind, metadata={"comment": text} if text else None) for name, kind, text in fields]
    )


STORED = schema(("id", LongType(), ""), ("name", StringType(), "of people"))


@pytest.mark.parametrize(
    ("rows", "same"),
    [
        (STORED, True),
        (schema(("name", StringType(), "of people"), ("id", LongType(), "")), False),
        (schema(("id", IntegerType(), ""), ("name", StringType(), "of people")), False),
        (schema(("id", LongType(), ""), ("name", StringType(), "of places")), False),
        (schema(("id", LongType(), "")), False),
        (schema(("ID", LongType(), ""), ("name", StringType(), "of people")), False),
    ],
)
def test_only_files_change(rows: StructType, same: bool) -> None:
    """The same columns in the same order, with the same comments; else Delta's own command writes the new ones down."""
    assert same_columns(rows, STORED) is same


def test_columns_with_parts_are_left_to_delta() -> None:
    """Their parts may be NULL or not, and have comments, too."""
    nested = schema(("tags", ArrayType(StringType()), ""))
    assert not same_columns(nested, nested)


class Writes:
    """Stands for Delta: what it is asked to write, by which way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: str = "") -> None:
        self.ways: list[tuple[str, Any]] = []
        self._refused = refused
        monkeypatch.setattr(whole_write, "file_rewrite", self._rewrite)
        monkeypatch.setattr(whole_write, "in_own_session", lambda rows: rows)

    @contextmanager
    def _rewrite(self, *given: Any) -> Iterator[Any]:
        files = sorted(file.path for file in given[3])
        put = SimpleNamespace(put=lambda *_, **more: self.ways.append(("files", (files, more))))
        yield self._refused or put

    def _plain(self, rows: Any, transaction: BatchTransaction) -> None:
        assert (isinstance(rows.schema, StructType), transaction.batch_id) == (True, 2)
        self.ways.append(("plain", None))

    def target(self, table: Path, **more: Any) -> WholeWrite:
        """What takes the rows."""
        how = {"once": True, "condition": None, "partition_columns": (), "rows_per_file": 9} | more
        plain: Any = SimpleNamespace(table=table, write=self._plain, **how)
        return WholeWrite(plain)

    def of(self, table: Path, rows: StructType = STORED, **more: Any) -> list[tuple[str, Any]]:
        """What is done with rows of these columns."""
        given: Any = SimpleNamespace(schema=rows, sparkSession=None)
        self.target(table, **more).write(given, BatchTransaction("p.v@refresh", 2, "{}"))
        return self.ways


def table(folder: Path, *, rows: int = 1, files: int = 2, partition_by: str | None = None) -> Path:
    """A table of some files."""
    fields = [pa.field("id", pa.int64()), pa.field("name", pa.string(), metadata={"comment": "of people"})]
    for _ in range(files):
        made = pa.table([pa.array([1] * rows, pa.int64()), pa.array(["a"] * rows)], pa.schema(fields))
        write_deltalake(str(folder), made, mode="append", partition_by=partition_by)
    return folder


def test_the_files_that_go_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that the table has, and no other look into its state."""
    there = sorted(file.name for file in table(tmp_path / "t").glob("*.parquet"))
    ((way, (files, more)),) = Writes(monkeypatch).of(tmp_path / "t")
    assert (way, files, more) == ("files", there, {"whole": True, "rows_per_file": 9})


@pytest.mark.parametrize(
    "more", [{"once": False}, {"condition": "id > 1"}, {"partition_columns": ("id",)}, {"rows": schema(("id", LongType(), ""))}]
)  # fmt: skip
def test_what_is_left_to_delta(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: dict[str, Any]) -> None:
    """A view whose rows are judged, a part of one, one that gets partitions, and one whose columns change."""
    assert Writes(monkeypatch).of(table(tmp_path / "t"), **more) == [("plain", None)]


def test_tables_that_are_left_to_delta(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that is not there, one that is partitioned, one without rows, and one that has moved on meanwhile."""
    empty = tmp_path / "e"
    DeltaTable.create(str(empty), pa.schema([pa.field("id", pa.int64())]))
    assert Writes(monkeypatch).of(empty, schema(("id", LongType(), ""))) == [("plain", None)]
    assert Writes(monkeypatch).of(tmp_path / "none") == [("plain", None)]
    assert Writes(monkeypatch).of(table(tmp_path / "p", partition_by="name")) == [("plain", None)]
    assert Writes(monkeypatch, "it has moved on").of(table(tmp_path / "t")) == [("plain", None)]
