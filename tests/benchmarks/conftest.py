"""The fixture of all benchmarks, and what time they have."""

from __future__ import annotations

import os

import pytest
from tests.benchmarks.frame.bench import Bench

# They measure nothing, and a run of all benchmarks shows the same at full size: only for who names them.
collect_ignore = ["test_smoke.py"]


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Bench:
    """A benchmark that has the name of its file."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    return Bench(name, seconds=float(os.environ.get("BENCH_SECONDS", Bench.seconds)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A benchmark has ten minutes on a quiet machine; pytest's own limit is for tests."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1800))
