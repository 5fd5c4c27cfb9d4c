from __future__ import annotations

import pytest
from tests.shared_broker import shared_broker

__all__ = ["shared_broker"]

# They take as long as all the others: each worker begins with one of them.
_FIRST = ("test_killed_at_each_point[disk, half of it]", "test_killed_at_each_point[disk, the other half]")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first."""
    items.sort(key=lambda item: _FIRST.index(item.name) if item.name in _FIRST else len(_FIRST))
