"""Rules by which a row that is kept out today is kept tomorrow: a view that has one is never what its last refresh left.

Decision 0219.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.definitions.clock_in_code import has_special_literal
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.incremental.techniques import Issue, IssueType
from headwater_spark.plans.plan_walk import asks_the_clock, items

# Others only count, or stop the update: which rows the view has does not depend on them.
_CHOOSING = (ViolationAction.DROP, ViolationAction.QUARANTINE)
# A part of the name of each function that a plan would have to be looked into for: most rules have none.
_WORDS = re.compile(r"current|now|time|date|today|tomorrow|yesterday|rand|uuid|uniform|shuffle|_id\b|method|reflect", re.IGNORECASE)  # fmt: skip


def clock_in_rules(frame: DataFrame, rules: Sequence[Expectation]) -> Issue | None:
    """Why rules may judge the same row in another way at another time, None where they don't.

    Args:
        frame: the view's query, over whose columns they are.
    """
    for rule in rules:
        if rule.unique is not None or rule.action not in _CHOOSING or not _WORDS.search(rule.constraint):
            continue
        judged = frame.select(F.expr(rule.constraint))._jdf.queryExecution().analyzed()  # noqa: SLF001
        clock = any(asks_the_clock(one) for one in items(judged.expressions().toSeq()))
        if clock or has_special_literal(rule.constraint):
            return Issue(
                IssueType.PLAN_NOT_DETERMINISTIC,
                f"the rule {rule.name!r} keeps other rows out at another time: {rule.constraint}",
                "TIME_FUNCTION",
                expression=rule.name,
                lasting=True,
            )
    return None
