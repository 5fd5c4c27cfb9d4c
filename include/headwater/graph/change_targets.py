"""Targets of AUTO CDC: they take nothing but changes, since other rows would have no sequence.

The target's own query, if it has one, and flows that append a batch one time hydrate it: their rows are upserted once, under
their own sequences.

Decision 0072.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow, FlowKind
from headwater.delta_log.table_history import TRANSACTION_RETENTION
from headwater.errors import InvalidExpectation, UnsupportedArgument


def check_only_changes(flow: Flow, flows: list[Flow]) -> None:
    """Raise InvalidChangeFlow where the target of a change flow takes other rows too."""
    others = [other for other in flows if other.target == flow.target and other is not flow]
    if flow.snapshots is not None and others:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} follows the snapshots of {flow.name!r}, and {others[0].name!r} writes to it too.",
            where=flow.location,
            remedy="Give each a table of its own: what a snapshot does not have is deleted.",
        )
    other = next(
        (f for f in others if f.changes is None and f.snapshots is None and not _fills_once(f)), None
    )
    if flow.changes is not None and other is not None:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} takes changes from {flow.name!r}, and rows from {other.name!r}.",
            where=flow.location,
            remedy=f'Declare the target by dp.create_streaming_table("{flow.target}") without a query. To fill it first, '
            "give the query to a view of its own and add dp.create_auto_cdc_flow(..., source=view, name=..., once=True).",
        )


def hydration_name(target: str) -> str:
    """The name of the flow that a target's own query becomes."""
    return f"{target}_hydration"


def apart_from_changes(flow: Flow, other: Flow) -> Flow | None:
    """Of two flows with one name, the one that is the target's own query, renamed as a hydration."""
    pair = (flow, other) if _fills_once(flow) else (other, flow)
    if flow.target != other.target or not _fills_once(pair[0]) or pair[1].changes is None:
        return None
    return replace(pair[0], name=hydration_name(flow.target))


def hydrated(flows: Iterable[Flow]) -> list[Flow]:
    """The flows, each query of a target's own turned into the hydration of that target."""
    all_flows = list(flows)
    changes = {flow.target: flow.changes for flow in reversed(all_flows) if flow.changes is not None}

    def turned(flow: Flow) -> Flow:
        changes_of_target = changes.get(flow.target)
        if changes_of_target is None or not _fills_once(flow):
            return flow
        upserts = replace(
            changes_of_target, source="", apply_as_deletes=None, apply_as_truncates=None, hydrates=True
        )
        name = hydration_name(flow.target) if _own_query(flow) else flow.name
        return replace(flow, name=name, once=True, kind=FlowKind.CHANGES, changes=upserts)

    return [turned(flow) for flow in all_flows]


def _own_query(flow: Flow) -> bool:
    return flow.kind is FlowKind.DEFAULT and flow.name in (flow.target, hydration_name(flow.target))


def _fills_once(flow: Flow) -> bool:
    """Whether it brings rows to a target of changes before them: the target's own query, or a batch that is appended one time."""
    return _own_query(flow) or (flow.kind is FlowKind.APPEND and flow.once)


# The table property with the number of seconds for which deletes are remembered.
RETENTION_PROPERTY = "pipelines.cdc.tombstoneGCThresholdInSeconds"


def check_retention(flow: Flow, dataset: Dataset) -> None:
    """Raise InvalidChangeFlow where the time for which the target remembers deletes is not a number of seconds."""
    seconds_text = dataset.table_properties.get(RETENTION_PROPERTY)
    if flow.changes is None or seconds_text is None:
        return
    try:
        seconds = float(seconds_text)
    except ValueError:
        seconds = math.nan
    # More than Python can subtract from today is not a time either.
    if not 0 <= seconds <= 1e10:
        raise InvalidChangeFlow(
            f"The property {RETENTION_PROPERTY} of {dataset.name!r} is {seconds_text!r}, which is not a number of seconds.",
            where=dataset.location,
            remedy='Write seconds as a number: "172800" are two days.',
        )


def check_transactions_are_kept(flow: Flow, dataset: Dataset) -> None:
    """Raise UnsupportedArgument where the target of a flow is to forget which batches it has."""
    if dataset.kind in (DatasetKind.MATERIALIZED_VIEW, DatasetKind.TEMPORARY_VIEW):
        return
    property_name = next(
        (n for n in dataset.table_properties if n.lower() == TRANSACTION_RETENTION.lower()), None
    )
    if property_name is not None:
        raise UnsupportedArgument(
            f"{dataset.name!r} takes the batches of {flow.name!r}, and its property {property_name} forgets which of them it has: a "
            "batch that comes again after a crash would be written twice.",
            where=dataset.location,
            remedy="Remove the property; ids of batches take next to no room.",
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
