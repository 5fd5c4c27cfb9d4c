"""Benchmarks run at a size of nothing and both of their sides are right, so that none can rot. The longer ones: ``make bench ONLY=smoke``."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.benchmarks import test_observe, test_recover, test_small
from tests.benchmarks.frame.bench import Bench


def test_small_updates(spark: SparkSession, tmp_path: Path) -> None:
    """Two tables by an update and by hand; a driver's successor takes in what it finds."""
    test_small.measure(Bench("small", smoke=True), tmp_path, {2: 1.0})
    (tmp_path / "recover").mkdir()
    test_recover.smoke(Bench("recover", smoke=True), tmp_path / "recover")


def test_what_is_observed(spark: SparkSession, tmp_path: Path) -> None:
    """Lag, freshness and health agree with what Spark and delta-rs say."""
    test_observe.measure(Bench("observe", smoke=True), tmp_path, spark)
