"""The session of these tests, and samples of their large matrices."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

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

WHOLE = bool(os.environ.get("HEADWATER_WHOLE"))


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    """Those of a process that runs for twenty minutes."""
    return {**SPARK, **ROOMY}


def _of_this_code() -> str:
    """Names the code and its tests: two runs of the same take the same sample, and the next change takes another."""
    folders = [f"HEAD:{name}" for name in ("include", "jobs", "plugins", "dags", "tests")]
    found = subprocess.run(
        ["git", "rev-parse", *folders], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return hashlib.sha256(found.stdout.encode()).hexdigest()[:12]


SAMPLE_SEED = os.environ.get("HEADWATER_SAMPLE") or _of_this_code()


def pytest_report_header() -> str:
    """Say how to run the same cases again."""
    return (
        "all cases of each matrix"
        if WHOLE
        else f"HEADWATER_SAMPLE={SAMPLE_SEED} (HEADWATER_WHOLE=1 for all cases)"
    )


def _left_out_of(found: list[pytest.Item], count: int, name: str) -> set[str]:
    """All but ``count`` of these, chosen by the seed."""
    kept = random.Random(f"{SAMPLE_SEED} {name}").sample(found, min(count, len(found)))
    return {item.nodeid for item in found} - {item.nodeid for item in kept}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep n cases of a test marked ``matrix(n)``, and one in four that are marked ``rotates``; ``make soak`` runs all."""
    if WHOLE:
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("matrix") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out: set[str] = set()
    for name, found in sorted(cases.items()):
        mark = found[0].get_closest_marker("matrix")
        assert mark is not None
        left_out |= _left_out_of(found, mark.args[0], name)
    rotating = [item for item in items if item.get_closest_marker("rotates") is not None]
    left_out |= _left_out_of(rotating, -(-len(rotating) // 4), "rotates")
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]
