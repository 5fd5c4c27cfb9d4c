from __future__ import annotations

import pytest
from tests.shared_broker import shared_broker

__all__ = ["shared_broker"]

# The longest, so that none begins when the other worker has ended. A worker gets two tests at first: each begins with kills on a disk,
# and has a short one behind them.
_FIRST = (
    "test_killed_at_each_point[disk, half of it]",
    "test_a_full_disk",
    "test_killed_at_each_point[disk, the other half]",
    "test_a_read_only_disk",
    "test_the_server_is_killed",
    "test_what_is_lost_changes_no_row",
    "test_tables_equal_those_of_one_machine",
    "test_a_frozen_replay_writes_nothing_when_it_wakes",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first."""
    items.sort(key=lambda item: _FIRST.index(item.name) if item.name in _FIRST else len(_FIRST))
