"""What is advised about each thing that stands against following changes."""

from __future__ import annotations

import pytest

from headwater.incremental.issue_remedies import remedy


@pytest.mark.parametrize(
    ("issue", "words"),
    [
        (("PLAN_NOT_INCREMENTALIZABLE", "OPERATOR_NOT_SUPPORTED", "LocalLimit", None), "leave the LIMIT"),
        (("PLAN_NOT_INCREMENTALIZABLE", "AGGREGATE_NOT_TOP_NODE", "Aggregate", None), "a column of each GROUP BY"),
        (("PLAN_NOT_INCREMENTALIZABLE", "WINDOW_FUNCTION_WITHOUT_PARTITION_BY", "Window", None), "give the window a PARTITION BY"),
        (("PLAN_NOT_INCREMENTALIZABLE", "OPERATOR_NOT_SUPPORTED", "Window", None), "the result a column of it"),
        (("PLAN_NOT_INCREMENTALIZABLE", "OPERATOR_NOT_SUPPORTED", "Join", None), "by which the reads are joined"),
        (("PLAN_NOT_DETERMINISTIC", "NON_DETERMINISTIC_EXPRESSION", None, "CollectList"), "sort_array(collect_list(x))"),
        (("PLAN_NOT_DETERMINISTIC", "TIME_FUNCTION", None, "CurrentDate"), "a parameter"),
        (("EXPECTATIONS_NOT_SUPPORTED", None, None, None), "the table that the view reads"),
    ],
)  # fmt: skip
def test_remedies(issue: tuple[str, str | None, str | None, str | None], words: str) -> None:
    """By the operator or the expression where there is one, else by the names of the issue."""
    assert words in (remedy(*issue) or "")


def test_no_remedy() -> None:
    """Where only another query would help, nothing is advised."""
    assert remedy("PLAN_NOT_DETERMINISTIC", "NON_DETERMINISTIC_EXPRESSION", None, "Rand") is None
