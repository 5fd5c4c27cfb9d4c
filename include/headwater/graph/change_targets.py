"""A table that AUTO CDC writes to takes nothing else: rows that come otherwise would have no sequence."""

from __future__ import annotations

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.errors import InvalidChangeFlow, InvalidExpectation


def check_only_changes(flow: Flow, flows: list[Flow]) -> None:
    """Raise InvalidChangeFlow where the target of a change flow takes other rows too."""
    others = [other for other in flows if other.target == flow.target and other is not flow]
    if flow.snapshots is not None and others:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} follows the snapshots of {flow.name!r}, and {others[0].name!r} writes to it too.",
            where=flow.location,
            remedy="Give each a table of its own: what a snapshot does not have is deleted.",
        )
    other = next((f for f in others if f.changes is None and f.snapshots is None), None)
    if flow.changes is not None and other is not None:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} takes changes from {flow.name!r}, and rows from {other.name!r}.",
            where=flow.location,
            remedy=f'Declare the target by dp.create_streaming_table("{flow.target}") without a query. To fill it first, '
            "give the query to a view of its own and add dp.create_auto_cdc_flow(..., source=view, name=..., once=True).",
        )


def check_no_rules(flow: Flow, dataset: Dataset) -> None:
    """Raise InvalidExpectation where rules stand on the target of snapshots: rows kept out would look deleted."""
    if flow.snapshots is not None and dataset.expectations:
        rule = dataset.expectations[0]
        raise InvalidExpectation(
            f"The expectation {rule.name!r} stands on {dataset.name!r}, which follows snapshots: a row that it keeps out "
            "would count as deleted.",
            where=rule.location or dataset.location,
            remedy="Put the rule on the view that gives the snapshot, or on a table that reads this one.",
        )
