from __future__ import annotations

import pytest
from tests.shared_broker import shared_broker

__all__ = ["shared_broker"]

# The kills on a disk take as long as all the others. A worker gets two tests at first: each begins with one of them, and has
# a short one behind it.
_FIRST = (
    "test_killed_at_each_point[disk, half of it]",
    "test_a_full_disk",
    "test_killed_at_each_point[disk, the other half]",
    "test_a_read_only_disk",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first."""
    items.sort(key=lambda item: _FIRST.index(item.name) if item.name in _FIRST else len(_FIRST))
