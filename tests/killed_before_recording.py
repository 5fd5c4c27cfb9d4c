"""What lies on disk after a driver was killed between its last commit and its mark: made without killing a process."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.offsets import numbered
from headwater_spark.execution.batch_records import BatchRecords


def killed_before_recording(case: PipelineCase, flows: Iterable[str]) -> None:
    """Run an update that leaves no record of a batch, and take the mark of each flow's last batch away.

    All that Spark and Delta leave is as after a kill; tests/fault_injection kills a driver at the same point.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchRecords, "_record", lambda *_arguments, **_options: None)
        report = case.update()
    assert report.state == "COMPLETED", report.error
    for flow in flows:
        forget_mark(case, flow)


def forget_mark(case: PipelineCase, flow: str) -> None:
    """Take the mark away by which a flow's last batch is known as done."""
    checkpoint = case.checkpoint(flow)
    commits = checkpoint.live_folder() / "commits"
    last = max(numbered(commits))
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    checkpoint.update_state(completed=False)
