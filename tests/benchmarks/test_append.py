"""An append flow against the same stream written by hand: a large backlog, and 50 small batches; of Delta and of Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most, throughput
from tests.benchmarks.frame.copying import LIMIT, copy_of
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch
from tests.benchmarks.frame.topics import fill_topic
from tests.benchmarks.peers.append_stream import append, delta_rows, kafka_rows
from tests.pipeline_case import PipelineCase, read_rows

from headwater_demo.kafka_broker import KafkaBroker

OURS, PEER = "headwater", "by hand"
BATCHES = 50
DELTA = """
@dp.table
def copied():
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", {per_batch}).load("{source}")
    return rows.where("amount > 0").selectExpr("id", "amount", "upper(country) as country")
"""
KAFKA = """
@dp.table
def copied():
    rows = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "{source}")
            .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", {per_batch}).load())
    return rows.selectExpr("cast(value as string) as value", "partition", "offset", "timestamp")
"""


def test_append(bench: Bench, tmp_path: Path) -> None:
    """A backlog keeps 0.97 of the throughput of the job by hand; 50 small batches take at most 5% longer."""
    spark = session(whole=True)
    measure_delta(bench, tmp_path, spark)
    with KafkaBroker(tmp_path / "kafka") as broker:
        measure_kafka(bench, tmp_path, spark, broker)
    bench.finish()


def measure_delta(bench: Bench, root: Path, spark: SparkSession) -> None:
    """A table of 16 files in batches of 8, and one of a file for each small batch."""
    rows = bench.size("delta_rows", 5_000_000, smoke=200)
    small = bench.size("rows_of_a_small_batch", 200, smoke=10)
    batches = bench.size("batches", BATCHES, smoke=2, brief=20)
    for part, count, files, per_batch, target in (
        ("Delta, backlog", rows, 16, 8, throughput(0.97)),
        ("Delta, small batches", small * batches, batches, 1, at_most(1.05)),
    ):
        source = root / f"source-{files}-{count}"
        _source_rows(spark, count).repartition(files).write.format("delta").save(str(source))
        text = DELTA.format(source=source, per_batch=per_batch)
        both = _contenders(
            root / part, text, count - len(range(0, count, 100)),
            lambda source=source, per_batch=per_batch: delta_rows(spark, str(source), per_batch),
        )  # fmt: skip
        if target.inverse:
            both[LIMIT] = lambda number, source=source: copy_of(source, root / f"copy{number}")
        bench.interleaved(part, both, share=0.25, warm=True)
        bench.compare(part, OURS, PEER, target)
        if target.inverse:
            bench.compare(part, OURS, LIMIT)


def measure_kafka(bench: Bench, root: Path, spark: SparkSession, broker: KafkaBroker) -> None:
    """A topic in batches of half of it, and one in 50 small batches."""
    messages = bench.size("messages", 1_000_000, smoke=20)
    small = bench.size("messages_of_a_small_batch", 200, smoke=10)
    batches = bench.sizes["batches"]
    for part, topic, count, per_batch, target in (
        ("Kafka, backlog", "backlog", messages, max(1, messages // 2), throughput(0.97)),
        ("Kafka, small batches", "small", small * batches, small, at_most(1.05)),
    ):
        lines = (
            json.dumps({"id": n, "customer": f"c{n % 977}", "amount": n % 2000 / 8}) for n in range(count)
        )
        fill_topic(broker, topic, lines)
        text = KAFKA.format(servers=broker.bootstrap_servers, source=topic, per_batch=per_batch)
        both = _contenders(
            root / part, text, count,
            lambda topic=topic, per_batch=per_batch: kafka_rows(spark, broker.bootstrap_servers, topic, per_batch),
        )  # fmt: skip
        bench.interleaved(part, both, share=0.25, warm=True)
        bench.compare(part, OURS, PEER, target)


def _contenders(
    root: Path, text: str, expected: int, rows: Callable[[], DataFrame]
) -> dict[str, Callable[[int], Run]]:
    """Both, each round into a table of its own, which has to have the expected number of rows."""

    def ours(number: int) -> Run:
        case = PipelineCase(root / f"ours{number}", text)
        with stopwatch() as watch:
            report = case.update()
        assert report.state == "COMPLETED", report.error
        assert count_of(case.table("copied")) == expected
        return watch.run

    def by_hand(number: int) -> Run:
        place = root / f"theirs{number}"
        with stopwatch() as watch:
            append(rows(), place)
        assert count_of(place / "table") == expected
        return watch.run

    return {OURS: ours, PEER: by_hand}


def count_of(table: Path) -> int:
    """The rows of a table."""
    return int(read_rows(table, "count(*)", "1")[0][0])


def _source_rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr(
        "id", "case when id % 100 = 0 then -1.0 else id / 7 end as amount", "concat('country-', id % 50) as country"
    )  # fmt: skip
