"""AUTO CDC against the MERGE statements that guides teach: seconds a batch, in one session, rows checked first.

The guides' statements lose events that come late; ours does not, and is to be no slower. ``BENCH_KEYS``, ``BENCH_BATCHES``,
``BENCH_CHANGES`` and ``BENCH_WHERE`` (all, spread: keys from everywhere, near: from one part of the table) change the sizes;
``BENCH_VECTORS=0`` leaves out the tables with deletion vectors.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as LogReader
from pyspark.sql import DataFrame, SparkSession
from tests.benchmarks.change_merges import SCHEMA, Contender, ours, two_steps_and_merge, window_and_merge
from tests.pipeline_case import SPARK, read_rows

from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.session import start_session

KEYS = int(os.environ.get("BENCH_KEYS", "1000000"))
BATCHES = int(os.environ.get("BENCH_BATCHES", "10"))
CHANGES = int(os.environ.get("BENCH_CHANGES", "10000"))
WHERE = os.environ.get("BENCH_WHERE", "all")
VECTORS = os.environ.get("BENCH_VECTORS", "1") == "1"
TYPES = os.environ.get("BENCH_TYPES", "1,2").split(",")
# A file has as many rows in a greater table.
FILES = max(16, KEYS // 62_500)
NAMES = ("key", "name", "amount", "at", "op")


def batch_of(number: int, where: str) -> list[tuple[Any, ...]]:
    """The events of a batch; one in twenty is older than what the batch before said of its key, one in 25 a delete."""
    part = KEYS // (BATCHES + 1)
    rows: list[tuple[Any, ...]] = []
    for i in range(CHANGES):
        late = i % 20 == 7 and number > 1
        told = number - 1 if late else number
        # A prime walks over the keys without meeting one twice in a batch; late rows meet a key of the batch before.
        key = ((i + late) * 7919 + told * 104729) % (part if where == "near" else KEYS)
        key += part * told if where == "near" else 0
        at = told * 1_000_000 + i - (500_000 if late else 0)
        op = "D" if i % 25 == 3 else "U"
        rows.append((key, None if op == "D" else f"n{at}", i, at, op))
    return rows


def fresh_table(spark: SparkSession, path: Path, *, history: bool, deletion_vectors: bool) -> None:
    """A table of KEYS rows in files that each hold a range of keys."""
    rows = spark.range(0, KEYS, 1, FILES).selectExpr(
        "id as key", "concat('n', id) as name", "id % 1000 as amount"
    )
    if history:
        rows = rows.selectExpr("*", "cast(0 as bigint) as __START_AT", "cast(null as bigint) as __END_AT")
    else:
        rows = rows.selectExpr("*", "cast(0 as bigint) as at")
    writer = rows.write.format("delta").option("delta.enableDeletionVectors", str(deletion_vectors).lower())
    writer.option("delta.enableChangeDataFeed", "true").save(str(path))


def wanted(events: list[dict[str, Any]], *, history: bool) -> list[tuple[Any, ...]]:
    """What the oracle says of the keys that the events are about."""
    first = [
        {"key": k, "name": f"n{k}", "amount": k % 1000, "at": 0, "op": "U"}
        for k in {e["key"] for e in events}
    ]
    oracle = expected_scd2 if history else expected_scd1
    rows = oracle(
        [*first, *events], keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D",
        except_column_list=("op", "at") if history else ("op",),
    )  # fmt: skip
    return [tuple(row.values()) for row in rows]


def wrong_rows(spark: SparkSession, contender: Contender, events: list[dict[str, Any]]) -> int:
    """How many rows about the events' keys are not as the oracle has them."""
    keys = spark.createDataFrame([(key,) for key in {e["key"] for e in events}], "key BIGINT")
    table = spark.read.format("delta").load(str(contender.table)).join(keys, "key", "left_semi")
    got = {tuple(row) for row in table.collect()}
    expected = set(wanted(events, history=contender.history))
    return len(got ^ expected)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("where", ["near", "spread"] if WHERE == "all" else [WHERE])
def test_merging_changes(tmp_path: Path, where: str):
    """Rows equal the oracle's; then the seconds are told, and the ratio to the guides' statement is checked."""
    spark = start_session("tests", SPARK)
    contenders = [
        contender
        for kind, contender in (
            ("1", Contender("type 1, ours", tmp_path / "a", ours(spark, history=False), False)),
            ("1", Contender("type 1, ours, deletion vectors", tmp_path / "b", ours(spark, history=False), False)),
            ("1", Contender("type 1, window and MERGE", tmp_path / "c", window_and_merge, False)),
            ("2", Contender("type 2, ours", tmp_path / "d", ours(spark, history=True), True)),
            ("2", Contender("type 2, ours, deletion vectors", tmp_path / "e", ours(spark, history=True), True)),
            ("2", Contender("type 2, two steps and MERGE", tmp_path / "f", two_steps_and_merge, True)),
        )
        if kind in TYPES and (VECTORS or "vectors" not in contender.name)
    ]  # fmt: skip
    for contender in contenders:
        vectors = "vectors" in contender.name
        fresh_table(spark, contender.table, history=contender.history, deletion_vectors=vectors)
    events: list[dict[str, Any]] = []
    for number in range(1, BATCHES + 1):
        rows = batch_of(number, where)
        events += [dict(zip(NAMES, row, strict=True)) for row in rows]
        path = tmp_path / f"batch-{number}"
        spark.createDataFrame(rows, SCHEMA).coalesce(2).write.parquet(str(path))
        # Who goes first changes from batch to batch.
        for turn in range(len(contenders)):
            run(spark, contenders[(turn + number) % len(contenders)], spark.read.parquet(str(path)), number)
    told = [f"{where}: {KEYS} keys, {BATCHES} batches of {CHANGES} changes, 5% late"]
    wrong = {c.name: wrong_rows(spark, c, events) for c in contenders}
    for contender in contenders:
        assert "ours" not in contender.name or not wrong[contender.name], contender.name
        median = statistics.median(contender.seconds[1:])
        told.append(f"{contender.name:32} median {median:5.2f} s, all {sum(contender.seconds):6.1f} s, wrong rows {wrong[contender.name]}, {bytes_written(contender.table) / 1e6:.0f} MB")  # fmt: skip
    print("\n".join(told))
    for contender in contenders[:2]:
        print(f"{contender.name}: another reader finds {other_reader(contender.table)}")
    for contender in contenders:
        print(contender.name, [round(seconds, 2) for seconds in contender.seconds])
    for kind in TYPES:
        mine = next(c for c in contenders if c.name == f"type {kind}, ours")
        theirs = next(c for c in contenders if c.name.startswith(f"type {kind}") and "ours" not in c.name)
        ratio = statistics.median(mine.seconds[1:]) / statistics.median(theirs.seconds[1:])
        print(f"type {kind}: {ratio:.2f} of the seconds of {theirs.name!r}")


def run(spark: SparkSession, contender: Contender, batch: DataFrame, number: int) -> None:
    """Merge one batch and take the time."""
    started = time.monotonic()
    contender.merge(batch, contender.table, number)
    contender.seconds.append(time.monotonic() - started)
    print(f"batch {number}, {contender.name}: {contender.seconds[-1]:.2f} s", flush=True)


def bytes_written(table: Path) -> int:
    """The bytes that the table's commits have added, the first left out."""
    metrics = [commit.get("operationMetrics", {}) for commit in LogReader(str(table)).history()]
    return sum(int(m.get("numTargetBytesAdded") or 0) for m in metrics)


def other_reader(table: Path) -> str:
    """How many rows delta-rs finds in a table, or why it does not read it."""
    try:
        return f"{read_rows(table, 'count(*) as n', '1')[0][0]} rows"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
