"""Refuse a refresh policy that a view's query can never keep: before anything is written, with Lakeflow's reason."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.incremental.conditions import NeverIncrementalizable
from headwater.incremental.techniques import Issue, IssueType
from headwater_spark.views.eligibility import never_incremental
from headwater_spark.views.plan_surgery import ViewPlan


def check_refresh_policy(dataset: Dataset, frame: DataFrame) -> None:
    """Check a view whose policy promises incremental refreshes.

    Raises:
        NeverIncrementalizable: its query, or its rules, allow none.
    """
    policy = dataset.refresh_policy
    if not policy.promises_increments or frame.isStreaming:
        return
    issues = _issues(dataset, frame)
    if issues:
        raise NeverIncrementalizable.of(dataset.name, policy, issues[0], dataset.location)


def _issues(dataset: Dataset, frame: DataFrame) -> list[Issue]:
    if needs_judgement(dataset.expectations):
        reason = "rules that quarantine rows, or look for duplicates, judge all rows together"
        return [Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, reason)]
    try:
        plan = ViewPlan(frame)
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        return never_incremental(plan.root, types, plan.undetermined())
    except (Py4JError, TypeError, ValueError) as error:
        reason = f"its plan can't be looked into: {error}".partition("\n")[0]
        return [Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, reason, "OPERATOR_NOT_SUPPORTED")]
