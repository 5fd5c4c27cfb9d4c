"""The session of these tests, and which of them only the soak has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.scheduling import ByFile, in_order
from tests.pipeline_case import SECRET, SMALL_QUERIES, SPARK
from tests.prepared_pipeline import done, prepared
from tests.seeds import SOAK
from tests.shared_broker import shared_broker
from tests.spark_fixtures import adaptive, kept, pipeline, spark
from tests.store_driver import store_driver

__all__ = ["adaptive", "done", "kept", "pipeline", "prepared", "shared_broker", "spark", "store_driver"]

# Hundreds of updates run in one JVM here, each with other queries: after four minutes of them half of the JVM's time still went
# into the second compiler, so this one does without it, too. It must not spend its time on collecting garbage either.
ROOMY = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=400m -XX:MetaspaceSize=300m -Xms1300m -Xmn900m",
    # Ten rows in a page of 64 MB, and a task's code in one of 4 MB: after a hundred joins of ten rows the heap was full.
    "spark.buffer.pageSize": "1m",
    "spark.broadcast.blockSize": "128k",
    "spark.sql.ui.retainedExecutions": "50",
    # Each query is described for a UI that nobody opens: in short that costs less.
    "spark.sql.ui.explainMode": "simple",
    # The log of a table of ten rows, in one task.
    "spark.databricks.delta.snapshotPartitions": "1",
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


# Tests of many seconds. Most have shorter ones of the same promise beside them, or are part of what the kills check: with all of them
# `make test` would take a quarter of an hour more.
LEFT_TO_THE_SOAK = Path(__file__).with_name("left_to_the_soak.txt")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """See ``scheduling``; another way of sharing tests out can still be asked for."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first. Leave out what is listed, where the whole folder runs and not a test that is named."""
    in_order(items)
    names = set(_left_out(config))
    if not names:
        return
    unknown = names - {item.nodeid for item in items}
    assert not unknown, f"{LEFT_TO_THE_SOAK} names tests that are not there: {sorted(unknown)}"
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
    items[:] = [item for item in items if item.nodeid not in names]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How many more tests there are."""
    if left := len(_left_out(config)):
        terminalreporter.write_sep("=", f"{left} more tests run in `make soak`: {LEFT_TO_THE_SOAK.name}")


def _left_out(config: pytest.Config) -> list[str]:
    here = Path(__file__).parent
    if SOAK or not any(here.is_relative_to(Path(argument).resolve()) for argument in config.args):
        return []
    return [f"tests/integration/{line}" for line in LEFT_TO_THE_SOAK.read_text().split("\n") if line]
