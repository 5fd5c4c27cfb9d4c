"""Each benchmark runs at a size of nothing and both of its sides are right, so that none can rot."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.benchmarks import (
    test_append,
    test_cdc,
    test_files,
    test_graph,
    test_growth,
    test_latency,
    test_observe,
    test_quality,
    test_recover,
    test_small,
    test_views,
)
from tests.benchmarks.frame.bench import Bench

from headwater_demo.kafka_broker import KafkaBroker


def smoke(name: str) -> Bench:
    return Bench(name, smoke=True)


def test_small_updates(spark: SparkSession, tmp_path: Path) -> None:
    """Two tables by an update and by hand; a driver's successor takes in what it finds."""
    test_small.measure(smoke("small"), tmp_path, {2: 1.0})
    (tmp_path / "recover").mkdir()
    test_recover.smoke(smoke("recover"), tmp_path / "recover")


def test_sources(spark: SparkSession, tmp_path: Path) -> None:
    """Backlogs, small batches, rules and files are taken in by all contenders; Kafka needs a broker, and is left to `make bench`."""
    test_append.measure_delta(smoke("append"), tmp_path / "append", spark)
    test_quality.measure(smoke("quality"), tmp_path / "quality", spark, ("json",))
    test_files.measure(smoke("files"), tmp_path / "files")


def test_streams_behind_a_topic(spark: SparkSession, tmp_path: Path, shared_broker: KafkaBroker) -> None:
    """Events of a topic are in gold once, by an update and by streams written by hand; a stream that was made to look old goes on."""
    (tmp_path / "latency").mkdir()
    test_latency.smoke(smoke("latency"), tmp_path / "latency", shared_broker)
    test_growth.measure(smoke("growth"), tmp_path / "growth", spark, batches=(10,), tables=(), rows=())


def test_ten_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The medallion comes out the same from one update and from a program for each table."""
    test_graph.measure(smoke("graph"), tmp_path)


def test_changes(spark: SparkSession, tmp_path: Path) -> None:
    """Changes are merged as the oracle has it."""
    test_cdc.measure(smoke("cdc"), tmp_path, spark)


def test_what_is_observed(spark: SparkSession, tmp_path: Path) -> None:
    """Lag, freshness and health agree with what Spark and delta-rs say."""
    test_observe.measure(smoke("observe"), tmp_path, spark)


def test_views_and_their_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Refreshed views have the rows of their queries, each by itself and in a pipeline of several."""
    test_views.measure(smoke("views"), tmp_path, spark)
