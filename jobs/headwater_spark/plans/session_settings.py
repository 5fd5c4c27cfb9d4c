"""Settings of a Spark session that hold for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def session_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings inside the block; afterwards each has the value that it had before, or none."""
    before = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)
