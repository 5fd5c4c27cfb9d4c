"""Errors of refresh policies have the names that Lakeflow's have, so that what is written about those is of use here."""

from __future__ import annotations

import pytest

from headwater.incremental.conditions import NeverIncrementalizable, NotIncrementalizable
from headwater.incremental.techniques import Issue, IssueType, RefreshPolicy

CHANCE, SHAPE = IssueType.PLAN_NOT_DETERMINISTIC, IssueType.PLAN_NOT_INCREMENTALIZABLE


@pytest.mark.parametrize(
    ("issue", "named"),
    [
        (Issue(CHANCE, "", "NON_DETERMINISTIC_EXPRESSION"), "EXPRESSION_NOT_DETERMINISTIC"),
        (Issue(CHANCE, "", "TIME_FUNCTION"), "EXPRESSION_NOT_DETERMINISTIC"),
        (Issue(CHANCE, "", "USER_DEFINED_FUNCTION"), "UDF_NOT_DETERMINISTIC"),
        (Issue(SHAPE, "", "AGGREGATE_NOT_TOP_NODE"), "AGGREGATE_NOT_TOP_NODE"),
        (Issue(SHAPE, "", "OPERATOR_NOT_SUPPORTED"), "OPERATOR_NOT_INCREMENTALIZABLE"),
        (Issue(SHAPE, "", "SUBQUERY_EXPRESSION"), "SUBQUERY_EXPRESSION_NOT_INCREMENTALIZABLE"),
        (Issue(SHAPE, "", "WINDOW_FUNCTION_WITHOUT_PARTITION_BY"), "WINDOW_WITHOUT_PARTITION_BY"),
        (Issue(IssueType.INPUT_NOT_IN_DELTA, ""), "INPUT_NOT_IN_DELTA"),
        (Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, ""), "EXPECTATIONS_NOT_SUPPORTED"),
    ],
)
def test_the_names_of_lakeflows_error(issue: Issue, named: str):
    """Each published name is there for what it means, before the names of the event log; what has none keeps its type."""
    first, _, ours = issue.name_in_errors.partition(", ")
    assert first == named
    assert ours in ("", issue.name)


def test_both_errors_have_them():
    """A policy that can never be kept and one that can't be kept this time name the reason in the same way."""
    issue = Issue(CHANCE, "rand may give another result from the same rows", "NON_DETERMINISTIC_EXPRESSION")
    never = NeverIncrementalizable.of("v", RefreshPolicy.INCREMENTAL, issue, None)
    once = NotIncrementalizable.of("v", RefreshPolicy.INCREMENTAL_STRICT, issue)
    names = "Reason: EXPRESSION_NOT_DETERMINISTIC, PLAN_NOT_DETERMINISTIC (NON_DETERMINISTIC_EXPRESSION)"
    assert names in never.what
    assert names in once.what
