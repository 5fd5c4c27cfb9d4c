"""Benchmarks run at a size of nothing and both of their sides are right: ``make bench ONLY=smoke``.

They measure nothing. Those that take seconds are run by ``make test``: ``tests/integration/test_benchmarks_can_run.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.benchmarks import (
    test_append,
    test_cdc,
    test_files,
    test_graph,
    test_growth,
    test_latency,
    test_quality,
    test_views,
)
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.programs import session

from headwater_demo.kafka_broker import KafkaBroker
from headwater_spark.session import end_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session of these tests' own; what is measured in the same process gets another one."""
    yield session()
    end_session()


def smoke(name: str) -> Bench:
    """A benchmark of that name, at a size of nothing."""
    return Bench(name, smoke=True)


def test_sources(spark: SparkSession, tmp_path: Path) -> None:
    """Backlogs, small batches, rules and files are taken in by all contenders."""
    test_append.measure_delta(smoke("append"), tmp_path / "append", spark)
    test_quality.measure(smoke("quality"), tmp_path / "quality", spark, ("json",))
    test_files.measure(smoke("files"), tmp_path / "files")


def test_streams_behind_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    """Events of a topic are in gold once, by an update and by streams written by hand; a stream that was made to look old goes on."""
    (tmp_path / "latency").mkdir()
    with KafkaBroker(tmp_path / "kafka") as broker:
        test_latency.smoke(smoke("latency"), tmp_path / "latency", broker)
    test_growth.measure(smoke("growth"), tmp_path / "growth", spark, batches=(10,), tables=(), rows=())


def test_ten_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The medallion comes out the same from one update and from a program for each table."""
    test_graph.measure(smoke("graph"), tmp_path)


def test_changes(spark: SparkSession, tmp_path: Path) -> None:
    """Changes are merged as the oracle has it."""
    test_cdc.measure(smoke("cdc"), tmp_path, spark)


def test_views_and_their_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Refreshed views have the rows of their queries, each by itself and in a pipeline of several."""
    test_views.measure(smoke("views"), tmp_path, spark)
