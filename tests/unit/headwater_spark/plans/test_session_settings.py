"""Settings hold inside the block only."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from headwater_spark.plans.session_settings import session_settings


class Conf(dict[str, str]):
    """A session's settings."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Session:
    """A session that has nothing but settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = Conf(settings)


@pytest.mark.parametrize("read", ["changed", "one that raises KeyError"])
def test_each_setting_is_put_back(read: str):
    """A new one is removed after the block and a changed one has its value again, also where the block fails."""
    session: Any = Session(changed="1", other="2")
    with suppress(KeyError), session_settings(session, {"changed": "3", "new": "4"}):
        assert session.conf == {"changed": "3", "new": "4", "other": "2"}
        assert session.conf[read] == "3"
    assert session.conf == {"changed": "1", "other": "2"}
