"""A quarantine table is read and marked on S3."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.quarantine.test_table import *  # noqa: F403
from tests.unit.headwater.quarantine.test_table import table

__all__ = ["table"]
_NUMBERS = itertools.count()


@pytest.fixture
def home(s3):
    """A folder of a bucket."""
    return s3.place("places", f"held-{next(_NUMBERS)}")
