"""A table that takes change events takes nothing else."""

from __future__ import annotations

from headwater.definitions.flow import Flow
from headwater.errors import InvalidChangeFlow


def check_only_changes(flow: Flow, flows: list[Flow]) -> None:
    """Raise InvalidChangeFlow where the target of a change flow takes other rows too: those would have no sequence."""
    other = next((f for f in flows if f.target == flow.target and f.changes is None), None)
    if flow.changes is not None and other is not None:
        raise InvalidChangeFlow(
            f"AUTO CDC: {flow.target!r} takes changes from {flow.name!r}, and rows from {other.name!r}.",
            where=flow.location,
            remedy=f'Declare the target by dp.create_streaming_table("{flow.target}") without a query. To fill it first, '
            "give the query to a view of its own and add dp.create_auto_cdc_flow(..., source=view, name=..., once=True).",
        )
