"""Which settings a stateful flow keeps, and what is asked for in vain."""

from __future__ import annotations

from headwater_spark.plans.stateful_queries import PARTITIONS, PROVIDER, overruled, state_settings


def test_the_first_settings_stand():
    """What was recorded is not touched by later wishes."""
    first = state_settings({}, {PARTITIONS: "7", PROVIDER: "some.Store"})
    assert first == {PARTITIONS: "7", PROVIDER: "some.Store"}
    assert state_settings(first, {PARTITIONS: "9", PROVIDER: None}) == first


def test_only_what_is_asked_for_is_overruled():
    """A setting that nobody gives, or that is as it was, is no news."""
    kept = state_settings({}, {PARTITIONS: "7", PROVIDER: "some.Store"})
    assert overruled(kept, {PARTITIONS: "9", "spark.other": "1"}) == {PARTITIONS: "9"}
    assert overruled(kept, {PARTITIONS: "7", PROVIDER: "some.Store"}) == {}
    assert overruled({}, {PARTITIONS: "9"}) == {}


def test_settings_left_to_us():
    """RocksDB, and Spark's own number of partitions."""
    chosen = state_settings({}, {PARTITIONS: None, PROVIDER: None})
    assert chosen[PARTITIONS] == "200"
    assert chosen[PROVIDER].endswith("RocksDBStateStoreProvider")
