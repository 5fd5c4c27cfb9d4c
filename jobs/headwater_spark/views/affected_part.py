"""The technique that recomputes the part of a view that changed, before anything is read."""

from __future__ import annotations

from headwater.incremental.costs import PREFIX, Limits
from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.plan_shape import anchor, not_traceable


def by_affected_part(keys: KeyColumns, limits: Limits) -> Technique | Issue:
    """The technique where changed rows can be followed to a part of the view, and that is not more work than the query itself."""
    reads = len(keys.changed)
    if reads > limits.max_changed_reads:
        return Issue(
            IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL,
            f"the query reads what changed {reads} times, more than {PREFIX}maxChangedReads={limits.max_changed_reads}",
            "EXCESSIVE_OPERATOR_NESTING",
        )
    return anchor(keys.root) if keys.possible() else not_traceable(keys.root)
