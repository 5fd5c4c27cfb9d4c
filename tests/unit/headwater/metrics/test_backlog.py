"""The backlog of a flow over several sources."""

from __future__ import annotations

import pytest

from headwater.metrics.backlog import Backlog, total

DONE, BEHIND = Backlog(0, 0, 0, 0, 0.0, moved=False), Backlog(3, 30, 1, None, 5.0, moved=True)
LOST = Backlog.because("the log is gone")


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], Backlog(moved=False)),
        ([DONE, BEHIND], Backlog(3, 30, 1, 0, 5.0, moved=True)),
        ([BEHIND, BEHIND], Backlog(6, 60, 2, None, 5.0, moved=True)),
        ([DONE, LOST], Backlog(seconds=0.0, moved=None, unknown="the log is gone")),
        ([BEHIND, LOST, LOST], Backlog(seconds=5.0, moved=True, unknown="the log is gone")),
    ],
)
def test_several_sources_together(parts: list[Backlog], whole: Backlog):
    """Sums and the greatest age; where one source is not known no number is, and only what is known to stand still has not moved."""
    assert total(parts) == whole
