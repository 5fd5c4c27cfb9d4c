"""Pipelines whose storage and warehouse are on S3, as far as that goes without a JVM."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline
from tests.unit.headwater.updates.test_news import CHANGES

from headwater.updates.news import has_news

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"storage-{number}"), s3.place("places", f"warehouse-{number}")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


def test_nothing_new(done):
    """After an update that took in everything there is no news."""
    verdict = has_news(done.project)
    assert (verdict.moved, verdict.reasons) == (False, ())


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_in_doubt_there_is_news(done, change):
    """Every change, and everything that can't be known, is a reason to run."""
    change(done)
    verdict = has_news(done.project)
    assert verdict.moved
    assert not verdict.unexpected
    assert len(verdict.reasons) == 1
