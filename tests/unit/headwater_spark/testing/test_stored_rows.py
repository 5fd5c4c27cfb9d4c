"""Which tables are read without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater_spark.testing import stored_rows as module
from headwater_spark.testing.stored_rows import stored_columns, stored_rows

MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
BY_SPARK = [{"read": "by Spark"}]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What Spark was asked to read: table and version."""
    reads: list[tuple[str, int]] = []

    class Reader:
        def format(self, _: str) -> Reader:
            return self

        def option(self, _: str, version: int) -> Reader:
            self.version = version
            return self

        def load(self, table: str) -> Any:
            reads.append((table, self.version))
            return SimpleNamespace(toArrow=lambda: pa.Table.from_pylist(BY_SPARK))

    monkeypatch.setattr(module, "local_session", lambda: SimpleNamespace(read=Reader()))
    return reads


def table_with(folder: Path, protocol: dict[str, Any], column: str, **metadata: Any) -> Path:
    """An empty table with a protocol and a column."""
    field = {"name": "a", "type": column, "nullable": True, "metadata": metadata}
    schema = json.dumps({"type": "struct", "fields": [field]})
    about = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"} if metadata else {}
    actions = [{"protocol": protocol}, {"metaData": {**about, "partitionColumns": [], "configuration": mode}}]
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return folder


def test_rows_at_a_version(tmp_path: Path, asked: list[tuple[str, int]]):
    """A plain table is read by its files, at the version that is asked for or the newest; columns have Spark's names of types."""
    table = str(tmp_path)
    first = pa.table({"a": [1], "s": [{"x": "y"}]})
    write_deltalake(table, first)
    write_deltalake(table, pa.table({"a": [2], "s": [None]}, schema=first.schema), mode="append")
    assert stored_rows(tmp_path, 0) == [{"a": 1, "s": {"x": "y"}}]
    assert sorted(row["a"] for row in stored_rows(tmp_path)) == [1, 2]
    assert stored_columns(tmp_path) == {"a": "bigint", "s": "struct<x:string>"}
    assert asked == []


@pytest.mark.parametrize(
    ("protocol", "column", "metadata"),
    [
        ({"minReaderVersion": 2, "minWriterVersion": 5}, "long", MAPPED),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}, "long", MAPPED),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}, "long", {}),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}, "variant", {}),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}, "long", {}),
    ],
)  # fmt: skip
def test_what_delta_rs_reads_otherwise_is_left_to_spark(
    tmp_path: Path, asked: list[tuple[str, int]], protocol: dict[str, Any], column: str, metadata: dict[str, Any]
):  # fmt: skip
    """Mapped columns, deletion vectors, VARIANT, widened types: delta-rs' Arrow reader refuses them, or gives other values."""
    table = table_with(tmp_path / "t", protocol, column, **metadata)
    assert stored_rows(table) == BY_SPARK
    assert asked == [(str(table), 0)]


def test_times_without_a_zone_are_plain(tmp_path: Path, asked: list[tuple[str, int]]):
    """The feature of times without a zone changes nothing of how rows are read."""
    named = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}  # fmt: skip
    assert stored_rows(table_with(tmp_path / "t", named, "timestamp_ntz")) == []
    assert asked == []
