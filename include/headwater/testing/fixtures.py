"""Fixtures for pytest. In ``conftest.py``: ``pytest_plugins = ["headwater.testing.fixtures"]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater import testing


@pytest.fixture(scope="session")
def spark() -> Any:
    """One small Spark session for all tests of the process; it ends with the process."""
    return testing.local_session()


@pytest.fixture
def run_dataset(spark: Any) -> Callable[..., Any]:  # noqa: ARG001 - it has to be there
    """:func:`headwater_spark.testing.run_dataset`, with the session started."""
    function: Callable[..., Any] = testing.run_dataset
    return function


@pytest.fixture
def run_pipeline(spark: Any) -> Callable[..., Any]:  # noqa: ARG001 - it has to be there
    """:func:`headwater_spark.testing.run_pipeline`, with the session started."""
    function: Callable[..., Any] = testing.run_pipeline
    return function


@pytest.fixture
def event_generator() -> Callable[..., testing.EventGenerator]:
    """:class:`headwater.testing.EventGenerator`; seed 0 by default."""

    def make(shape: str = "clicks", *, seed: int = 0, **options: Any) -> testing.EventGenerator:
        return testing.EventGenerator(shape, seed=seed, **options)

    return make
