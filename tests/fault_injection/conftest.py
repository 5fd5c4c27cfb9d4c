from __future__ import annotations

import pytest
from tests.shared_broker import shared_broker

__all__ = ["shared_broker"]

# It takes as long as half of the others: one worker begins with it, the other one does the rest. A worker gets two tests at first.
_FIRST = ("test_killed_at_each_point[disk]", "test_a_full_disk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest test first, with a short one behind it."""
    items.sort(key=lambda item: _FIRST.index(item.name) if item.name in _FIRST else len(_FIRST))
