"""The session of these tests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.pipeline_case import SPARK
from tests.prepared_pipeline import done, prepared
from tests.spark_fixtures import pipeline, spark

__all__ = ["done", "pipeline", "prepared", "spark"]

# Hundreds of updates run in one JVM here: it has time to compile well, and must not spend it on collecting garbage.
ROOMY = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=400m",
    "spark.sql.ui.retainedExecutions": "50",
    # A fifth of the time of a small update goes into compiling queries that see ten rows. Drivers of the tests of DAGs and
    # of kills run with an update's own settings.
    "spark.sql.codegen.wholeStage": "false",
}


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    """Those of a process that runs for twenty minutes."""
    return {**SPARK, **ROOMY}
