"""Errors of ours that Spark's Python workers raise come back as what they were."""

from __future__ import annotations

from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import FlowFailed, SourcePositionLost
from headwater_spark.execution.failures import flow_error

FLOW = Flow("t", "t", lambda: None, SourceLocation("main.py", 7))
TRACEBACK = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed: Traceback (most recent call last):
  File "worker.py", line 1, in main
headwater.errors.{kind}: [SOURCE_POSITION_LOST] A batch was to end at record 9, password=hunter2.
  what to do: Begin anew.

SQLSTATE: 38000
"""


def test_an_error_of_a_worker():
    """Its kind, sentence and remedy are those that were raised; the user's line is added, and secrets are taken out."""
    error = flow_error(FLOW, RuntimeError(TRACEBACK.format(kind="SourcePositionLost")))
    assert type(error) is SourcePositionLost
    assert error.exit_code == 3
    assert error.what.startswith("A batch was to end at record 9")
    assert "hunter2" not in str(error)
    assert (error.where, error.remedy) == ("main.py:7", "Begin anew.")


def test_a_name_that_is_no_error():
    """A text that only looks so is a failure like others."""
    assert type(flow_error(FLOW, RuntimeError(TRACEBACK.format(kind="Annotations")))) is FlowFailed
