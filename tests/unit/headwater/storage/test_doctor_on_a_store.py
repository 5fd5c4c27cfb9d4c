"""The doctor does on S3 what it does on a disk: plans, costs, new epochs, copies."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.doctor.test_new_epoch_plan import *  # noqa: F403
from tests.unit.headwater.doctor.test_open_epoch import *  # noqa: F403
from tests.unit.headwater.doctor.test_reprocessed_rows import *  # noqa: F403
from tests.unit.headwater.metrics.conftest import done, pipeline

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"doctor-{number}/storage"), s3.place("places", f"doctor-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
