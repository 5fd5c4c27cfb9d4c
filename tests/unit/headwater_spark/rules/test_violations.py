"""What an error says of the row that broke a rule, and of the source's record that it was made of."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from headwater_spark.messages.exception_text import causes_of
from headwater_spark.rules.expectations import find_violation


def read_from(source: Any) -> Any:
    """The source's record as the error has it."""
    text = json.dumps({"rules": ["r", "s"], "record": {"a": "é"}, "input": source})
    message = f"SparkRuntimeException: [USER_RAISED_EXCEPTION] HEADWATER_EXPECTATION_VIOLATION{text} SQLSTATE: P0001"
    violation = find_violation(causes_of([message]))
    assert violation is not None
    assert (violation.rules, violation.record) == (("r", "s"), '{"a": "é"}')
    return None if violation.input is None else json.loads(violation.input)


def in_base64(text: str) -> str:
    """Bytes as JSON has them."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("as_text", [True, False])
def test_a_message_of_a_topic(as_text: bool):
    """Its key and value are text again, and its headers are left out; a key may be missing."""
    record: Any = {"key": None, "value": in_base64("ü"), "offset": 7, "headers": [{"key": "token"}]}
    source = {"record": json.dumps(record) if as_text else record, "topic": "clicks"}
    assert read_from(source) == {"key": None, "value": "ü", "offset": 7}


def test_a_row_of_a_file():
    """It is as it was read, with the file that it came from."""
    source = {"record": {"key": "a", "value": 1, "headers": "kept"}, "file": "file:/in/a.json", "topic": None}
    assert read_from(source) == {"key": "a", "value": 1, "headers": "kept", "file": "file:/in/a.json"}
    assert read_from({"record": {"a": 1}}) == {"a": 1}


def test_a_source_that_is_not_known():
    """It is said to be missing, not to be empty."""
    assert read_from(None) is None
