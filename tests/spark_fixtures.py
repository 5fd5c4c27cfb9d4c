"""Fixtures for tests that need Spark: one session a process, a pipeline of its own for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline_case import SPARK, PipelineCase

from headwater_spark.plans.session_settings import session_settings
from headwater_spark.session import start_session
from headwater_spark.testing.local_session import forget_tables


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    """The settings of the process's session; a folder of tests may have others."""
    return SPARK


@pytest.fixture(scope="session")
def spark(spark_settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The process's session; ended with it, so that no JVM is left behind."""
    # A data source in Python sees the environment in which the JVM was started: keys for the emulator of Kinesis.
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
    session = start_session("tests", spark_settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def adaptive(spark: SparkSession) -> Iterator[None]:
    """For modules about counts, jobs and plans: Spark's adaptive execution, which an update has, and each driver of its own.

    Where only rows matter, a session may do without: it makes a Spark job of each exchange of ten rows.
    """
    with session_settings(spark, {"spark.sql.adaptive.enabled": "true"}):
        yield


@pytest.fixture(scope="module")
def one_partition(spark: SparkSession) -> Iterator[None]:
    """For modules about what definitions mean, and not about how rows are spread: shuffles in one task, states of one part."""
    with session_settings(spark, {"spark.sql.shuffle.partitions": "1"}):
        yield


@pytest.fixture(scope="module")
def kept(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Callable[..., AbstractContextManager[PipelineCase]]:
    """Pipelines that are prepared once for a module: each use begins with what the first call of ``prepare`` left there."""
    cases: dict[Callable[[PipelineCase], object], PipelineCase] = {}

    @contextmanager
    def begin(source: str, prepare: Callable[[PipelineCase], object]) -> Iterator[PipelineCase]:
        if prepare not in cases:
            case = PipelineCase(tmp_path_factory.mktemp("kept") / "case", source)
            prepare(case)
            case.keep()
            cases[prepare] = case
        else:
            cases[prepare].restore()
        try:
            yield cases[prepare]
        finally:
            forget_tables(spark)

    return begin


@pytest.fixture
def pipeline(tmp_path: Path, spark: SparkSession) -> Iterator[Callable[..., PipelineCase]]:
    """Make a pipeline from the text of its source."""

    def make(source: str = "", **options: Any) -> PipelineCase:
        return PipelineCase(tmp_path, source, **options)

    yield make
    forget_tables(spark)
