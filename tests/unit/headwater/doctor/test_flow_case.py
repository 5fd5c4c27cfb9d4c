"""Which epoch a flow is looked at in."""

from __future__ import annotations

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline

from headwater.doctor import flow_case
from headwater.doctor.flow_case import FlowCase
from headwater.storage.walking import remove_tree


def epoch(done: Pipeline) -> int:
    """The epoch that ``silver`` is taken to be in."""
    return FlowCase(done.project, done.manifest, done.flow("silver")).epoch


def test_the_newest_epoch_that_is_recorded(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """With all of a flow's state gone, the event log says which epoch was its last, where its target does not; else ``flow.json`` does."""
    recorded = {("silver", 2): 0, ("silver", 3): 1, ("bronze", 9): 0}
    monkeypatch.setattr(flow_case, "last_batches", lambda _: recorded)
    assert epoch(done) == 0
    remove_tree(done.checkpoint("silver").folder)
    assert epoch(done) == 3
    recorded.clear()
    assert epoch(done) == 0
