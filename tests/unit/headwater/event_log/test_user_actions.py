"""Whether a flow has written since its sink was dropped."""

from __future__ import annotations

from pathlib import Path

from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.user_actions import DROP, sent_since_drop
from headwater.event_log.writer import EventLogWriter


def record(folder: Path, *kinds: str) -> None:
    """Batches of the flow ``send`` into the sink ``outbox``, and drops of it or of another, in this order."""
    with EventLogWriter(folder, "p", "p", f"u{kinds}") as events:
        for kind in kinds:
            if kind == "batch":
                details = flow_progress(FlowStatus.RUNNING, metrics={"num_output_rows": 1})
                events.emit(
                    "flow_progress",
                    "a batch",
                    level="METRICS",
                    flow="send",
                    dataset="outbox",
                    batch_id=0,
                    epoch=0,
                    details=details,
                )
            else:
                events.emit("user_action", "It was dropped.", dataset=kind, details={"user_action": {"action": DROP}})  # fmt: skip


def test_sent_since_the_drop(tmp_path: Path):
    """Never without a batch; of a dropped sink only what came after counts, also in one update; other sinks' drops are theirs."""
    assert not sent_since_drop(tmp_path, "send", "outbox")
    record(tmp_path, "outbox")
    assert not sent_since_drop(tmp_path, "send", "outbox")
    record(tmp_path, "batch")
    assert sent_since_drop(tmp_path, "send", "outbox")
    assert not sent_since_drop(tmp_path, "sends", "outbox")
    record(tmp_path, "other")
    assert sent_since_drop(tmp_path, "send", "outbox")
    record(tmp_path, "batch", "outbox")
    assert not sent_since_drop(tmp_path, "send", "outbox")
    record(tmp_path, "outbox", "batch")
    assert sent_since_drop(tmp_path, "send", "outbox")
