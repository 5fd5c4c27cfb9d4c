"""Of which sources the records are columns, that a query reads one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.rules import source_records as module

STREAMS = "org.apache.spark.sql.execution.streaming"


@pytest.mark.parametrize(
    ("kind", "source", "columnar"),
    [
        (f"{STREAMS}.runtime.StreamingRelation", "org.apache.spark.sql.delta.sources.DeltaDataSource", True),
        (f"{STREAMS}.runtime.StreamingRelation", "parquet", True), (f"{STREAMS}.runtime.StreamingRelation", "ORC", True),
        (f"{STREAMS}.runtime.StreamingRelation", "json", False), (f"{STREAMS}.runtime.StreamingRelationV2", "kafka", False),
        ("org.apache.spark.sql.execution.datasources.LogicalRelation", "", True),
    ],
)  # fmt: skip
def test_sources_of_columns(monkeypatch: pytest.MonkeyPatch, kind: str, source: str, columnar: bool):
    """Tables and files of columns; a topic's records, and lines of files, are read whole in any case."""
    monkeypatch.setattr(module, "class_name", lambda _: kind)
    leaf: Any = SimpleNamespace(dataSource=lambda: SimpleNamespace(className=lambda: source))
    assert module._is_columnar(leaf) is columnar
