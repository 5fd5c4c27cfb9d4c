"""AUTO CDC against the MERGE statements that guides teach: seconds a batch, in one session, rows checked first.

The guides' statements lose events that come late; ours does not, and is to be no slower. ``BENCH_KEYS``, ``BENCH_BATCHES``,
``BENCH_CHANGES`` and ``BENCH_WHERE`` (all, spread: keys from everywhere, near: from one part of the table) change the sizes;
``BENCH_VECTORS=0`` leaves out the tables with deletion vectors, ``BENCH_GROWN`` is how often the keys of the greater table are those
of the smaller one (0: no such test).
"""

from __future__ import annotations

import os
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
GROWN = int(os.environ.get("BENCH_GROWN", "5"))
# How much slower than a guide's statement a median batch may be, and than one of a smaller table: room for noise alone.
SLOWER, GROWS = 1.15, 1.5
NAMES = ("key", "name", "amount", "at", "op")


def batch_of(number: int, where: str, keys: int = KEYS) -> list[tuple[Any, ...]]:
    """The events of a batch; one in twenty is older than what the batch before said of its key, one in 25 a delete."""
    part = keys // (BATCHES + 1)
    rows: list[tuple[Any, ...]] = []
    for i in range(CHANGES):
        late = i % 20 == 7 and number > 1
        told = number - 1 if late else number
        # A prime walks over the keys without meeting one twice in a batch; late rows meet a key of the batch before.
        key = ((i + late) * 7919 + told * 104729) % (part if where == "near" else keys)
        key += part * told if where == "near" else 0
        at = told * 1_000_000 + i - (500_000 if late else 0)
        op = "D" if i % 25 == 3 else "U"
        rows.append((key, None if op == "D" else f"n{at}", i, at, op))
    return rows


def fresh_table(
    spark: SparkSession, path: Path, *, history: bool, deletion_vectors: bool, keys: int = KEYS
) -> None:
    """A table of so many rows in files that each hold a range of keys; a file has as many in a greater table."""
    rows = spark.range(0, keys, 1, max(16, keys // 62_500)).selectExpr(
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


def contenders_in(spark: SparkSession, root: Path, *, vectors: bool) -> list[Contender]:
    """Everybody who takes part, each with a table of its own to be made."""
    every = [
        Contender("type 1, ours", root / "a", ours(spark, history=False), False),
        Contender("type 1, ours, deletion vectors", root / "b", ours(spark, history=False), False),
        Contender("type 1, window and MERGE", root / "c", window_and_merge, False),
        Contender("type 2, ours", root / "d", ours(spark, history=True), True),
        Contender("type 2, ours, deletion vectors", root / "e", ours(spark, history=True), True),
        Contender("type 2, two steps and MERGE", root / "f", two_steps_and_merge, True),
    ]
    return [c for c in every if c.name[len("type ")] in TYPES and (vectors or "vectors" not in c.name)]


def measure(
    spark: SparkSession, root: Path, where: str, *, keys: int = KEYS, vectors: bool = VECTORS
) -> list[Contender]:
    """All batches merged by everybody; the rows of ours are checked, then everybody's seconds are told."""
    contenders = contenders_in(spark, root, vectors=vectors)
    for contender in contenders:
        with_vectors = "vectors" in contender.name
        fresh_table(
            spark, contender.table, history=contender.history, deletion_vectors=with_vectors, keys=keys
        )
    events: list[dict[str, Any]] = []
    for number in range(1, BATCHES + 1):
        # Into a greater table come the same changes: what they cost is to depend on them.
        rows = batch_of(number, where, min(keys, KEYS))
        events += [dict(zip(NAMES, row, strict=True)) for row in rows]
        path = root / f"batch-{number}"
        spark.createDataFrame(rows, SCHEMA).coalesce(2).write.parquet(str(path))
        # Who goes first changes from batch to batch.
        for turn in range(len(contenders)):
            run(spark, contenders[(turn + number) % len(contenders)], spark.read.parquet(str(path)), number)
    told = [f"{where}: {keys} keys, {BATCHES} batches of {CHANGES} changes, 5% late"]
    for contender in contenders:
        wrong = wrong_rows(spark, contender, events)
        assert "ours" not in contender.name or not wrong, contender.name
        written = bytes_written(contender.table) / 1e6
        told.append(f"{contender.name:32} median {contender.median:5.2f} s, all {sum(contender.seconds):6.1f} s, wrong rows {wrong}, {written:.0f} MB")  # fmt: skip
    told += [
        f"{c.name}: another reader finds {other_reader(c.table)}" for c in contenders if "ours" in c.name
    ]
    told += [f"{c.name} {[round(seconds, 2) for seconds in c.seconds]}" for c in contenders]
    print("\n".join(told))
    return contenders


def pairs(contenders: list[Contender]) -> list[tuple[str, Contender, Contender]]:
    """For each type ours and the guides'."""
    return [
        (
            kind,
            next(c for c in contenders if c.name == f"type {kind}, ours"),
            next(c for c in contenders if c.name.startswith(f"type {kind}") and "ours" not in c.name),
        )
        for kind in TYPES
    ]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("where", ["near", "spread"] if WHERE == "all" else [WHERE])
def test_merging_changes(tmp_path: Path, where: str):
    """Rows equal the oracle's, and the median batch is not slower than that of the guides' statement."""
    contenders = measure(start_session("tests", SPARK), tmp_path, where)
    ratios = {kind: mine.median / theirs.median for kind, mine, theirs in pairs(contenders)}
    print(f"seconds of ours, the guides' being 1: {ratios}")
    assert max(ratios.values()) <= SLOWER


@pytest.mark.skipif(GROWN < 2, reason="BENCH_GROWN says so")
@pytest.mark.timeout(3600)
def test_cost_of_a_greater_table(tmp_path: Path):
    """Batches of neighbouring keys into a table several times as large take hardly longer."""
    spark = start_session("tests", SPARK)
    sizes = [measure(spark, tmp_path / str(n), "near", keys=n, vectors=False) for n in (KEYS, KEYS * GROWN)]
    small, great = ({kind: mine.median for kind, mine, _ in pairs(size)} for size in sizes)
    growth = {kind: great[kind] / small[kind] for kind in TYPES}
    print(f"seconds of a table {GROWN} times as large, the smaller one's being 1: {growth}")
    assert max(growth.values()) <= GROWS


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
