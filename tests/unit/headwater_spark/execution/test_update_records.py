"""What an update says of itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of

from headwater_spark.execution import update_records
from headwater_spark.execution.update_records import record_stop, user_name


@pytest.mark.parametrize(("signalled", "events"), [(True, 1), (False, 0)])
def test_a_stop_is_recorded_once(tmp_path: Path, signalled: bool, events: int):
    """Whoever sees it first says so; an update that ends by itself was not told to."""
    stop: Any = SimpleNamespace(signalled=signalled, recorded=False)
    context: Any = context_of(tmp_path, stop_requested=stop)
    for _ in range(2):
        record_stop(context)
    assert [kind for kind, _, _ in context.events.emitted] == ["user_action"] * events
    assert stop.recorded is signalled


@pytest.mark.parametrize("error", [KeyError("uid"), OSError("no passwd")])
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch, error: Exception):
    """In a container there may be none: the update runs all the same."""

    def nobody() -> str:
        raise error

    monkeypatch.setattr(update_records.getpass, "getuser", nobody)
    assert user_name() == "unknown"
