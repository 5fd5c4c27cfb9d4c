"""How late rows came is measured exactly enough to choose a watermark by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.errors import UsageError
from headwater.metrics.lateness import delay_text, kind_of_delay, table_lateness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def table_of(folder: Path, seconds: list[float | None]) -> Path:
    """A table of events at noon that arrived so many seconds later (None: nobody knows)."""
    arrived = [None if late is None else NOON + timedelta(seconds=late) for late in seconds]
    times = pa.timestamp("us", tz="UTC")
    rows = {
        "event_time": pa.array([NOON] * len(seconds), times),
        "arrived": pa.array(arrived, times),
        "name": ["x"] * len(seconds),
    }
    write_deltalake(str(folder), pa.table(rows))
    return folder


def test_shares_and_advice(tmp_path: Path):
    """Of a thousand rows, one a second later than the other, each share is within its second; clocks ahead are not late."""
    lateness = table_lateness(
        table_of(tmp_path / "t", [-5.0, None, *map(float, range(1000))]), "event_time", "arrived"
    )
    assert (lateness.rows, lateness.ahead, lateness.longest) == (1001, 1, 999.0)
    for share, seconds in lateness.by_share.items():
        assert seconds == pytest.approx(share * 1000, abs=15)
    assert lateness.advice(0.5) == "10 minutes"
    assert lateness.advice() == "30 minutes"


@pytest.mark.parametrize(
    ("seconds", "text", "kind"),
    [
        (0, "1 minute", "short"),
        (60, "1 minute", "short"),
        (61, "2 minutes", "short"),
        (301, "10 minutes", "medium"),
        (3600, "1 hour", "medium"),
        (3601, "2 hours", "long"),
        (86401, "2 days", "long"),
    ],
)
def test_round_delays(seconds: float, text: str, kind: str):
    """A delay is the next round one, never a shorter one, of the class that the guidelines give it."""
    assert delay_text(seconds) == text
    assert kind_of_delay(text) == kind


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (("nowhere", "arrived"), "no column"),
        (("name", "arrived"), "no times"),
        (("event_time", "arrived"), "No row"),
    ],
)
def test_what_can_not_be_measured(tmp_path: Path, columns: tuple[str, str], said: str):
    """A missing column, one without times, and a table without both have errors of their own."""
    with pytest.raises(UsageError, match=said):
        table_lateness(table_of(tmp_path / "t", [None]), *columns)


def test_no_table(tmp_path: Path):
    """A table that was never written is said to be missing."""
    with pytest.raises(UsageError, match="no table"):
        table_lateness(tmp_path / "t", "event_time", "arrived")
