"""Where rows can be quarantined or compared with each other, and where they can't."""

from __future__ import annotations

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import needs_judgement, quarantines
from headwater.definitions.flow import Flow
from headwater.errors import InvalidExpectation
from headwater.quarantine.columns import UNREADABLE_FILE
from headwater_spark.plans.output_mode import OutputMode


def check_judged(dataset: Dataset, kind: DatasetKind, flow: Flow, mode: OutputMode) -> None:
    """Raise InvalidExpectation where rows can't be quarantined or compared: in views, and in running aggregations.

    Args:
        kind: what the dataset turned out to be.
        mode: how the flow is written.
    """
    rules = [rule for rule in dataset.expectations if needs_judgement([rule])]
    if not rules:
        return
    reserved = next((rule for rule in dataset.expectations if rule.name.lower() == UNREADABLE_FILE), None)
    if reserved is not None:
        raise InvalidExpectation(
            f"The name {UNREADABLE_FILE!r} is taken: files that can't be read have it in the quarantine.",
            where=reserved.location,
            remedy="Give the expectation another name.",
        )
    what = "quarantines rows" if quarantines(rules[:1]) else "compares rows"
    if kind is DatasetKind.TEMPORARY_VIEW:
        raise InvalidExpectation(
            f"The expectation {rules[0].name!r} {what}, and {dataset.name!r} is a view: its rows are computed again in "
            "each table that reads it.",
            where=rules[0].location,
            remedy="Put the rule on the table that reads the view, or use expect, expect_or_drop or expect_or_fail.",
        )
    if flow.replace_where is not None and quarantines(rules):
        raise InvalidExpectation(
            f"The expectation {rules[0].name!r} quarantines rows, and {flow.name!r} replaces a part of its table: what "
            "the other parts had kept out would be lost.",
            where=rules[0].location,
            remedy="Use expect_or_drop, or leave replace_where out.",
        )
    if mode.kind.is_aggregation:
        raise InvalidExpectation(
            f"The expectation {rules[0].name!r} {what}, and {flow.name!r} is a running aggregation: the same row comes again, "
            "changed, with each batch.",
            where=rules[0].location,
            remedy="Put the rule on the table that the aggregation reads, or declare a materialized view.",
        )
