"""Which rows of a target a batch is compared with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.auto_cdc import open_target as module
from headwater_spark.auto_cdc.open_target import OpenTarget


@pytest.mark.parametrize(
    ("local", "cleared_at", "matches"),
    [
        ("events", None, ("keys", "events")),
        (None, None, "the batch is large"),
        ("events", "a moment", "the batch truncates"),
        (None, "a moment", "the batch is large"),
    ],
)
def test_rows_are_looked_up_for_a_batch_on_the_driver(
    monkeypatch: pytest.MonkeyPatch, local: str | None, cleared_at: str | None, matches: Any
):
    """Of a batch that truncates every row may change, and one that is not on the driver has no keys to look for: Spark reads all."""
    monkeypatch.setattr(module, "find_rows", lambda _, keys, events, __: (keys, events))
    rows: Any = SimpleNamespace(schema=None)
    batch: Any = SimpleNamespace(
        local=local, cleared_at=cleared_at, not_local=None if local else "the batch is large",
        columns=SimpleNamespace(keys="keys"),
    )  # fmt: skip
    table: Any = None
    about = OpenTarget(Path(), table, rows).rows_about(batch)
    assert (about.table, about.matches) == (rows, matches)
