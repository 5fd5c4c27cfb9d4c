"""AUTO CDC against the MERGE statements that guides teach: seconds a batch, in one session.

The guides' statements lose events that come late; ours does not, and is to be no slower.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable as LogReader
from pyspark.sql import DataFrame, SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, timed
from tests.benchmarks.peers.merges import two_steps_and_merge, window_and_merge

from headwater.definitions.change_flow import ChangeFlow
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

NAMES = ("key", "name", "amount", "at", "op")
SCHEMA = "key BIGINT, name STRING, amount BIGINT, at BIGINT, op STRING"
# Batches move through the table where keys are neighbours: as many parts as there are rounds at most, and the warm one.
PARTS = 12
OURS, VECTORS, GROWN, PEER = "ours", "ours, deletion vectors", "ours, greater table", "MERGE of the guides"
# How much slower than a guide's statement, and than one of a smaller table: room for noise alone.
SLOWER, GROWS = at_most(1.0), at_most(1.5)


def test_cdc(bench: Bench, tmp_path: Path) -> None:
    """A batch of changes is merged no slower than by the guides' statement, deletion vectors or not, and flat with the table."""
    measure(bench, tmp_path, session(whole=True))
    bench.finish()


def measure(bench: Bench, root: Path, spark: SparkSession) -> None:
    """Types 1 and 2, neighbouring and spread keys."""
    keys, changes = bench.size("keys", 1_000_000, smoke=400), bench.size("changes", 10_000, smoke=40)
    grown, files = bench.size("grown", 5, smoke=2), bench.size("files_of_a_table", 16, smoke=2)
    for kind in (1, 2):
        # A smoke run has each type and each kind of keys once.
        for where in (("near",), ("spread",))[kind - 1] if bench.smoke else ("near", "spread"):
            part = f"type {kind}, {where} keys"
            stream = _Changes(spark, root / part, keys, changes, where)
            stream.before_round_0 = 0 if bench.smoke else 1
            peer = two_steps_and_merge if kind == 2 else window_and_merge
            tables = {
                OURS: _Table(root / part / "a", _ours(spark, kind), kind, keys),
                VECTORS: _Table(root / part / "b", _ours(spark, kind), kind, keys, vectors=True),
                PEER: _Table(root / part / "c", peer, kind, keys),
            }
            if where == "near" and not bench.smoke:
                tables[GROWN] = _Table(root / part / "d", _ours(spark, kind), kind, keys * grown)
            for table in tables.values():
                table.fill(spark, files)
            contenders = {name: partial(table.take, stream) for name, table in tables.items()}
            bench.interleaved(part, contenders, share=0.25, most=PARTS - 2, warm=True)
            wrong = {name: table.wrong_rows(spark, stream.events) for name, table in tables.items()}
            assert not any(count for name, count in wrong.items() if name != PEER), wrong
            bench.report(f"{part}, wrong rows of the guides' MERGE", wrong[PEER])
            written = {name: round(table.bytes_written() / 1e6, 1) for name, table in tables.items()}
            bench.report(f"{part}, megabytes written", written)
            bench.compare(part, OURS, PEER, SLOWER)
            bench.compare(part, VECTORS, OURS, at_most(1.0))
            bench.compare(part, VECTORS, PEER)
            if GROWN in tables:
                bench.compare(part, GROWN, OURS, GROWS)


Merge = Callable[[DataFrame, Path, int], None]


def _ours(spark: SparkSession, kind: int) -> Merge:
    """AUTO CDC; what it remembers lies beside the table."""
    history = kind == 2
    flow = ChangeFlow(
        "events", ("key",), "at", apply_as_deletes="op = 'D'", except_columns=("op",), history=history
    )
    if history:
        flow = replace(flow, except_columns=("op", "at"))
    columns = change_columns(flow, spark.createDataFrame([], SCHEMA), None)

    def merge(batch: DataFrame, table: Path, number: int) -> None:
        metadata = json.dumps({"pipeline": "bench", "flow": "f", "epoch": 0, "batch": number})
        target = ChangeTarget(table, table.with_name(f"{table.name}-memory"))
        apply_changes(batch, columns, target, BatchTransaction("bench.f@0", number, metadata))

    return merge


class _Changes:
    """The batches that all tables of a part take: written once, when the first of them wants it."""

    def __init__(self, spark: SparkSession, root: Path, keys: int, changes: int, where: str) -> None:
        self.spark, self.root, self.keys, self.changes, self.where = spark, root, keys, changes, where
        self.events: list[dict[str, Any]] = []
        self._written = 0
        self.before_round_0 = 1

    def batch(self, number: int) -> DataFrame:
        """A batch, counted from 1."""
        path = self.root / f"batch-{number}"
        if number > self._written:
            rows = self.rows(number)
            self.events += [dict(zip(NAMES, row, strict=True)) for row in rows]
            self.spark.createDataFrame(rows, SCHEMA).coalesce(2).write.parquet(str(path))
            self._written = number
        return self.spark.read.parquet(str(path))

    def rows(self, number: int) -> list[tuple[Any, ...]]:
        """The events of a batch; one in twenty is older than what the batch before said of its key, one in 25 a delete."""
        part = self.keys // PARTS
        rows: list[tuple[Any, ...]] = []
        for i in range(self.changes):
            late = i % 20 == 7 and number > 1
            batch = number - 1 if late else number
            # A prime walks over the keys without meeting one twice in a batch; late rows meet a key of the batch before.
            key = ((i + late) * 7919 + batch * 104729) % (part if self.where == "near" else self.keys)
            key += part * (batch - 1) if self.where == "near" else 0
            at = batch * 1_000_000 + i - (500_000 if late else 0)
            op = "D" if i % 25 == 3 else "U"
            rows.append((key, None if op == "D" else f"n{at}", i, at, op))
        return rows


@dataclass
class _Table:
    """One way to merge, into a table of its own."""

    path: Path
    merge: Merge
    kind: int
    keys: int
    vectors: bool = False

    def fill(self, spark: SparkSession, files: int) -> None:
        """Its first rows, in so many files that each hold a range of keys; a file has as many in a greater table."""
        rows = spark.range(0, self.keys, 1, max(files, self.keys // 62_500)).selectExpr(
            "id as key", "concat('n', id) as name", "id % 1000 as amount"
        )
        if self.kind == 2:
            rows = rows.selectExpr("*", "cast(0 as bigint) as __START_AT", "cast(null as bigint) as __END_AT")
        else:
            rows = rows.selectExpr("*", "cast(0 as bigint) as at")
        writer = rows.write.format("delta").option("delta.enableChangeDataFeed", "true")
        writer.option("delta.enableDeletionVectors", str(self.vectors).lower()).save(str(self.path))

    def take(self, stream: _Changes, number: int) -> Run:
        """Merge the batch of a round; the warm round, -1, has the first."""
        count = number + stream.before_round_0 + 1
        batch = stream.batch(count)
        return timed(lambda: self.merge(batch, self.path, count))

    def wrong_rows(self, spark: SparkSession, events: list[dict[str, Any]]) -> int:
        """How many rows about the events' keys are not as the oracle has them."""
        touched = {event["key"] for event in events}
        keys = spark.createDataFrame([(key,) for key in touched], "key BIGINT")
        table = spark.read.format("delta").load(str(self.path)).join(keys, "key", "left_semi")
        first = [{"key": k, "name": f"n{k}", "amount": k % 1000, "at": 0, "op": "U"} for k in touched]
        oracle = expected_scd2 if self.kind == 2 else expected_scd1
        expected = oracle(
            [*first, *events], keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D",
            except_column_list=("op", "at") if self.kind == 2 else ("op",),
        )  # fmt: skip
        return len({tuple(row) for row in table.collect()} ^ {tuple(row.values()) for row in expected})

    def bytes_written(self) -> int:
        """The bytes that the table's commits have added, the first left out."""
        metrics = [commit.get("operationMetrics", {}) for commit in LogReader(str(self.path)).history()]
        return sum(int(entry.get("numTargetBytesAdded") or 0) for entry in metrics)
