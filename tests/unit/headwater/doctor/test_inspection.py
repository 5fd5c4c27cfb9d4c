"""What an inspection says of a checkpoint that can't be read in part."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.doctor import inspection as module
from headwater.errors import CheckpointUnreadable

MOMENT = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        (int(MOMENT.timestamp() * 1000), "2026-05-04T12:00:00+00:00"), (None, None),
        (CheckpointUnreadable("cut"), None), (StorageNotReadable("no right"), None),
    ],
)  # fmt: skip
def test_a_watermark(monkeypatch: pytest.MonkeyPatch, known: int | Exception | None, shown: str | None):
    """In UTC; where its mark can't be read the rest is shown all the same: the findings say what is wrong."""

    def watermark(_: object) -> int | None:
        if isinstance(known, Exception):
            raise known
        return known

    monkeypatch.setattr(module, "watermark_ms", watermark)
    case: Any = SimpleNamespace(start=SimpleNamespace(folder=None))
    assert module._watermark(case) == shown
