"""The verbs of the command line give the same answers where storage and warehouse are on S3."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.commands.test_events_and_quality import *  # noqa: F403
from tests.unit.headwater.commands.test_reading_verbs import *  # noqa: F403
from tests.unit.headwater.metrics.conftest import done, pipeline

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"verbs-{number}/storage"), s3.place("places", f"verbs-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
