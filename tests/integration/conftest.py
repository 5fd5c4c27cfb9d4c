"""The session of these tests, and their order."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from tests.integration.scheduling import ByFile, in_order
from tests.pipeline_case import SECRET, SMALL_QUERIES, SPARK
from tests.prepared_pipeline import done, prepared
from tests.shared_broker import shared_broker
from tests.spark_fixtures import adaptive, kept, one_partition, pipeline, spark
from tests.store_driver import store_driver

__all__ = [
    "adaptive", "done", "kept", "one_partition", "pipeline", "prepared", "shared_broker", "spark", "store_driver",
]  # fmt: skip

# Hundreds of updates run in one JVM here, each with other queries: after four minutes of them half of the JVM's time still went
# into the second compiler, so this one does without it, too. It must not spend its time on collecting garbage either.
ROOMY = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=400m -XX:MetaspaceSize=300m -Xms1300m -Xmn900m",
    # Ten rows in a page of 64 MB, and a task's code in one of 4 MB: after a hundred joins of ten rows the heap was full.
    "spark.buffer.pageSize": "1m",
    "spark.broadcast.blockSize": "128k",
    "spark.sql.ui.retainedExecutions": "50",
    # See the fixture ``adaptive``. Drivers of the tests of DAGs run with an update's own settings.
    **SMALL_QUERIES,
}


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    """Those of a process that runs for twenty minutes."""
    return {**SPARK, **ROOMY, **SECRET}


@pytest.fixture(autouse=True)
def _no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test takes the power away, and updates of this process would wait for the disk at every record; drivers of their own do."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """See ``scheduling``; another way of sharing tests out can still be asked for."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first."""
    in_order(items)
