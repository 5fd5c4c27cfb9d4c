"""Whether a materialized view can be refreshed by what changed, for ``validate``, the manifest and ``explain`` alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.incremental.techniques import Issue, IssueType
from headwater.storage.place import Place
from headwater_spark.plans.plan_walk import descends_from, items, simple_name
from headwater_spark.views.clock_in_rules import clock_in_rules
from headwater_spark.views.eligibility import LeafTechniques, leaf_techniques, never_incremental
from headwater_spark.views.plan_surgery import ViewPlan, delta_leaf


@dataclass(frozen=True)
class Eligibility:
    """What a view's query and rules allow.

    Args:
        issues: why no refresh can ever be incremental; empty where one may be.
        leaves: the techniques for each read of a table, none where there are issues.
        plan: of its query; None where it can't be looked into.
    """

    issues: tuple[Issue, ...]
    leaves: tuple[LeafTechniques, ...] = ()
    plan: ViewPlan | None = None


def view_eligibility(dataset: Dataset, frame: DataFrame, stubs: Place) -> Eligibility:
    """Look into a view's query.

    Args:
        frame: what its function gave.
        stubs: below it lies what stands in for the pipeline's own tables.
    """
    by_clock = clock_in_rules(frame, dataset.expectations)
    judged: tuple[Issue, ...] = () if by_clock is None else (by_clock,)
    if needs_judgement(dataset.expectations):
        reason = "rules that quarantine rows, or look for duplicates, judge all rows together"
        judged = (*judged, Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, reason))
    try:
        plan = ViewPlan(frame)
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        issues = (*judged, *never_incremental(plan.root, types, plan.undetermined(), _tables(plan, stubs)))
        return Eligibility(issues, () if issues else tuple(leaf_techniques(plan.root, types)), plan)
    except (Py4JError, TypeError, ValueError) as error:
        reason = f"its plan can't be looked into: {error}".partition("\n")[0]
        unseen = Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, reason, "OPERATOR_NOT_SUPPORTED")
        return Eligibility((*judged, unseen))


def file_paths(leaf: Any) -> list[str] | None:
    """Where the files lie that a leaf of a plan reads; None where it reads none."""
    if simple_name(leaf) != "LogicalRelation" or not descends_from(leaf.relation(), "HadoopFsRelation"):
        return None
    return [str(path.toString()) for path in items(leaf.relation().location().rootPaths())]


def _tables(plan: ViewPlan, stubs: Place) -> dict[int, str]:
    """Where each leaf's table lies, by the leaf's number: a Delta table, or one of the pipeline's, which another folder stands in for."""
    tables = {}
    for node in plan.root.leaves:
        leaf = plan.leaf(node.number)
        paths = file_paths(leaf) or []
        if paths and (delta_leaf(leaf) is not None or all(str(stubs) in path for path in paths)):
            tables[node.number] = ", ".join(paths)
    return tables
