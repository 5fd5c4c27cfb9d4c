"""Where the target does not say which batches it has, a lost position is detected from what was recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import checkpoint_was_lost


@pytest.mark.parametrize(("recorded", "conditions"), [(3, ["CHECKPOINT_LOST"]), (None, [])])
def test_both_logs_of_a_sinks_flow_are_gone(tmp_path: Path, recorded: int | None, conditions: list[str]):
    """All rows would be sent again; a flow that never had a batch has lost nothing."""
    checkpoint = FlowCheckpoint(tmp_path / "outbox" / "send")
    state = FlowState(sink_id="kafka:outbox", completed=True)
    checkpoint.write_state(state)
    checkpoint.epoch_folder(0).mkdir()
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"x"}')
    start = FlowStart(
        "p",
        "send",
        "outbox",
        checkpoint,
        state,
        None,
        "kafka:outbox",
        is_sink=True,
        last_recorded=lambda: recorded,
    )
    assert [damage.condition for damage in checkpoint_was_lost(start)] == conditions
