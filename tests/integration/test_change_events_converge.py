"""AUTO CDC: whatever the order, the split and the repetition of events, the table is what the oracle computes from all of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from tests.pipeline_case import read_rows

from headwater.definitions.change_flow import ChangeFlow
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes
from headwater_spark.auto_cdc.change_columns import ChangeColumns, change_columns
from headwater_spark.execution.foreach_batch import BatchTransaction

SCHEMA = "key INT, at INT, op STRING, name STRING, city STRING"


class Changes:
    """A target table, and change events applied to it batch by batch."""

    def __init__(self, spark: SparkSession, root: Path, flow: ChangeFlow, schema: str = SCHEMA) -> None:
        self.spark, self.schema = spark, schema
        self.columns: ChangeColumns = change_columns(flow, spark.createDataFrame([], schema), None)
        self.target = ChangeTarget(root / "table", root / "memory")
        DeltaTable.create(spark).location(str(self.target.path)).addColumns(
            self.columns.target_schema
        ).execute()
        self.batches = 0

    def apply(self, rows: Iterable[tuple[Any, ...]], batch: int | None = None) -> None:
        """Apply a batch; ``batch`` repeats an earlier one."""
        self.batches += batch is None
        frame = self.spark.createDataFrame(list(rows), self.schema)
        number = self.batches if batch is None else batch
        metadata = json.dumps({"pipeline": "tests", "flow": "flow", "epoch": 0, "batch": number})
        apply_changes(frame, self.columns, self.target, BatchTransaction("tests.flow@0", number, metadata))

    def rows(self, order: str = "1") -> list[tuple[Any, ...]]:
        """The table's rows, by key."""
        return read_rows(self.target.path, order=order)


def flow(**options: Any) -> ChangeFlow:
    """A change flow over the events of this file."""
    given = {"keys": ("key",), "sequence_by": "at", "apply_as_deletes": "op = 'D'", "except_columns": ("op",)}
    return ChangeFlow("events", **{**given, **options})


@pytest.fixture
def changes(spark: SparkSession, tmp_path: Path) -> Callable[..., Changes]:
    return lambda **options: Changes(spark, tmp_path, flow(**options))


def events_of(chance: random.Random, keys: int, each: int) -> list[tuple[Any, ...]]:
    """Random events: deletes, nulls, equal sequences, and values that repeat."""
    return [
        (key, chance.randint(1, 8), chance.choice("UUUD"), chance.choice([None, "a", "b"]), chance.choice([None, "x", "y"]))
        for key in range(keys)
        for _ in range(chance.randint(1, each))
    ]  # fmt: skip


VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "type 1, sequence kept": ({}, {}),
    "type 1, sequence left out": ({"except_columns": ("op", "at")}, {"except_column_list": ("op", "at")}),
    "type 1, nulls ignored": ({"ignore_nulls": True}, {"ignore_null_updates": True}),
    "type 1, nulls of one column ignored": (
        {"ignore_nulls_columns": ("city",), "except_columns": ("op", "at")},
        {"ignore_null_updates": ("city",), "except_column_list": ("op", "at")},
    ),
    "type 2": ({"history": True, "except_columns": ("op", "at")}, {"except_column_list": ("op", "at")}),
    "type 2, sequence kept": ({"history": True}, {}),
    "type 2, one column tracked": (
        {"history": True, "tracked_columns": ("name",)},
        {"track_history_column_list": ("name",)},
    ),
    "type 2, nulls ignored": (
        {"history": True, "ignore_nulls": True, "except_columns": ("op", "at")},
        {"ignore_null_updates": True, "except_column_list": ("op", "at")},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_order(changes: Callable[..., Changes], variant: str):
    """Random events over many keys, shuffled, cut into batches, some sent twice: the table equals the oracle."""
    options, expected = VARIANTS[variant]
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sent = events_of(chance, keys=150, each=7)
    arrivals = [*sent, *chance.sample(sent, 40)]
    chance.shuffle(arrivals)
    table = changes(**options)
    cuts = sorted(chance.sample(range(len(arrivals)), 3))
    for start, end in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
        table.apply(arrivals[start:end])
    names = ("key", "at", "op", "name", "city")
    rows: list[Mapping[str, Any]] = [dict(zip(names, event, strict=True)) for event in sent]
    arguments: dict[str, Any] = {
        "keys": ("key",), "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D", "except_column_list": ("op",),
    } | expected  # fmt: skip
    if options.get("history"):
        wanted = expected_scd2(rows, **arguments)
        got = table.rows('key, "__START_AT"')
    else:
        wanted = expected_scd1(rows, **arguments)
        got = table.rows("key")
    assert got == [tuple(row.values()) for row in wanted]
