"""What is read out of the text of an error that a rule raised."""

from __future__ import annotations

from headwater_spark.messages.exception_text import causes_of
from headwater_spark.rules.expectations import find_violation


def test_messages_that_are_no_violation():
    """Other errors of Spark are not taken for one; text after a violation is."""
    assert find_violation(causes_of(["SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero"])) is None
    text = '[USER_RAISED_EXCEPTION] HEADWATER_EXPECTATION_VIOLATION{"rules":["r"],"record":{"a":"}"}} SQLSTATE: P0001 {x}'
    violation = find_violation(causes_of([f"SparkRuntimeException: {text}"]))
    assert violation is not None
    assert (violation.rules, violation.record) == (("r",), '{"a": "}"}')
