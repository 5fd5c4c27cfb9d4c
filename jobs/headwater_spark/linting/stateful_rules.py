"""State that only grows, and a watermark without state: HW101 to HW104, HW108."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.finding import Finding
from headwater_spark.java_classes import OPTION, java_class
from headwater_spark.linting.flow_case import FlowCase, watermark_of
from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes, simple_name
from headwater_spark.plans.stateful_queries import is_stateful

_MARK = "EventTimeWatermark"
_WATERMARK = 'Add .withWatermark("event_time", "10 minutes") before it'


def unbounded_aggregations(case: FlowCase) -> Iterator[Finding]:
    """HW101."""
    for node in case.nodes_of("Aggregate"):
        keys = items(node.groupingExpressions())
        if not keys or any(watermark_of(part) for key in keys for part in expression_nodes(key)):
            continue
        names = ", ".join(_name(key) for key in keys)
        yield case.find(
            "HW101",
            f"The aggregation by {names} has no watermark among its keys: its state keeps every key that ever came, "
            "and each batch writes the whole result.",
            f"{_WATERMARK}, and group by a window over that column. If the keys are few and stay so, silence this.",
            ("groupBy", "groupby", "rollup", "cube", "agg", "count"),
        )


def unbounded_deduplications(case: FlowCase) -> Iterator[Finding]:
    """HW103."""
    for node in case.nodes_of("Deduplicate", "Distinct"):
        keys = items(node.keys()) if class_name(node).endswith(".Deduplicate") else items(node.output())
        if any(watermark_of(key) for key in keys):
            continue
        names = ", ".join(_name(key) for key in keys)
        marked = next((_name(a) for a in items(node.child().output()) if watermark_of(a)), None)
        if marked:
            message = (
                f"dropDuplicates over {names} leaves out {marked!r}, which has the watermark: "
                "the watermark frees nothing, and every key is kept for good."
            )
        else:
            message = (
                f"The deduplication over {names} has no watermark: every key that ever came is kept for good."
            )
        yield case.find(
            "HW103",
            message,
            f"{'Use' if marked else _WATERMARK + ', and use'} .dropDuplicatesWithinWatermark([...]): "
            "it forgets a key when the watermark's delay has passed.",
            ("dropDuplicates", "drop_duplicates", "distinct"),
        )


def unbounded_joins(case: FlowCase) -> Iterator[Finding]:
    """HW102."""
    for node in case.nodes_of("Join"):
        left, right = node.left(), node.right()
        if not (left.isStreaming() and right.isStreaming()):
            continue
        sides = [name for name, side, partner in (("left", left, right), ("right", right, left))
                 if not _bounded(case, node, side, partner)]  # fmt: skip
        if not sides:
            continue
        yield case.find(
            "HW102",
            f"The join of two streams keeps every row of its {' and '.join(sides)} side for good: nothing in the "
            "condition says how long a partner may be awaited.",
            "Give both sides a watermark, and bound the times in the condition: "
            "click_time BETWEEN shown_time AND shown_time + INTERVAL 5 MINUTES.",
            ("join",),
        )


def _bounded(case: FlowCase, join: Any, side: Any, other: Any) -> bool:
    """Whether Spark can free the state of ``side``: by a window among the keys, or by a bound in the condition."""
    jvm = case.frame.sparkSession._jvm  # noqa: SLF001 - Spark's own reckoning has no public face in Python
    helper = java_class(jvm, "org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper")
    if helper.isWatermarkInJoinKeys(join):
        return True
    attributes = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.AttributeSet")
    # Only whether there is a bound matters, so any watermark works. This one is too large for anything but a long.
    watermark = java_class(jvm, OPTION).apply(10**13)
    return any(
        helper.getStateValueWatermark(
            side.outputSet(), attributes.apply(marked), join.condition(), watermark
        ).isDefined()
        for marked in items(other.output())
        if watermark_of(marked)
    )


def stateful_functions(case: FlowCase) -> Iterator[Finding]:
    """HW104."""
    for node in case.nodes_of("FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"):
        old = class_name(node).endswith("WithState")
        mode = simple_name(node.timeout() if old else node.timeMode()).rstrip("$")
        if mode not in ("NoTimeout", "NoTime"):
            continue
        yield case.find(
            "HW104",
            "The function keeps state by key, and has no timeout or timer that would free any of it.",
            'Give it one: applyInPandasWithState(..., timeoutConf="EventTimeTimeout"), or '
            'transformWithState(..., timeMode="EventTime") with timers or a TTL.',
            ("applyInPandasWithState", "transformWithState", "transformWithStateInPandas"),
        )


def unused_watermarks(case: FlowCase) -> Iterator[Finding]:
    """HW108."""
    # A view's watermark is for its readers. Delta's source reads a table in the order of its times where it is told to.
    ordered = any(
        leaf.options.get("witheventtimeorder", "false").lower() == "true" for leaf in case.stream_leaves
    )
    if case.dataset.kind is DatasetKind.TEMPORARY_VIEW or ordered or is_stateful(case.frame):
        return
    marked = sorted({_name(node.eventTime()) for node in case.nodes_of(_MARK)} - _marked_by_views(case))
    if not marked:
        return
    yield case.find(
        "HW108",
        f"The watermark on {' and '.join(marked)} has no effect: no row is left out for being late, and none is merged, since the query keeps no state.",
        "Take it out. Late rows are left out by a rule, dp.expect_or_drop; rows of one key give way to newer ones by "
        "replace_using and sequence_by, or by dp.create_auto_cdc_flow; each key is taken once by .dropDuplicatesWithinWatermark([...]).",
        ("withWatermark",),
    )


def _marked_by_views(case: FlowCase) -> set[str]:
    """The columns that temporary views of the query give a watermark: others may read those views, too."""
    frames = [case.pipeline.evaluation.frames[view.name] for view in case.views]
    plans = [frame._jdf.queryExecution().analyzed() for frame in frames]  # noqa: SLF001 - no public face in Python
    nodes = (node for plan in plans for node in plan_nodes(plan))
    return {_name(node.eventTime()) for node in nodes if simple_name(node) == _MARK}


def _name(expression: Any) -> str:
    name = getattr(expression, "name", None)
    text = str(expression.sql())
    return str(name()) if name is not None and "(" not in text else text
