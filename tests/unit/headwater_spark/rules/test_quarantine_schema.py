"""The columns of a quarantine that nothing has been written to yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampNTZType

from headwater.quarantine import columns as c
from headwater_spark.rules import quarantine_schema as module
from headwater_spark.rules.quarantine_schema import empty_quarantine


@dataclass(frozen=True)
class Null:
    """A column without a value."""

    kind: Any = None
    name: str = ""

    def cast(self, kind: Any) -> Null:
        return replace(self, kind=kind)

    def alias(self, name: str) -> Null:
        return replace(self, name=name)


def test_a_quarantine_before_its_first_row(monkeypatch: pytest.MonkeyPatch):
    """A query over it is resolved as over the later table: reason, the row's own columns, and what is managed, each with its type."""
    monkeypatch.setattr(module, "F", SimpleNamespace(lit=lambda _: Null()))
    asked: list[Any] = []
    frame = SimpleNamespace(select=lambda *columns: asked.extend(columns))
    session: Any = SimpleNamespace(range=lambda rows: frame if rows == 0 else None)
    fields = {"id": LongType(), "_Flow": StringType(), "at": TimestampNTZType(), "name": StringType()}
    empty_quarantine(session, StructType([StructField(name, kind) for name, kind in fields.items()]))
    assert [column.name for column in asked] == [c.MANAGED[0], "id", "name", *c.MANAGED[1:]]
    kinds = {column.name: column.kind for column in asked}
    assert (kinds["id"], kinds["name"]) == (LongType(), StringType())
    assert {name: kind for name, kind in kinds.items() if name in c.MANAGED and kind != "string"} == {
        c.RULES: "array<string>", c.EPOCH: "int", c.BATCH: "bigint", c.PARTITION: "int", c.OFFSET: "bigint",
        c.SOURCE_VALUE: "binary", c.QUARANTINED_AT: "timestamp", c.STATUS_AT: "timestamp",
    }  # fmt: skip
