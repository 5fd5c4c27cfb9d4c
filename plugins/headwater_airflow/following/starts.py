"""Which updates of a DAG run belong together: those since it was started, or cleared last.

A cleared run keeps its request. What it did before is over, and was announced where it ended well.

Decision 0157.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult, fold_flow_results
from headwater.event_log.update_summary import UpdateSummary, fold_updates


def starts_of(updates: Sequence[UpdateSummary]) -> list[list[UpdateSummary]]:
    """The updates of one request by the start of the run that they are of; one that does not say so is of the start before it."""
    starts: list[list[UpdateSummary]] = []
    of = None
    for update in updates:
        if not starts or (update.requested_at is not None and of not in (None, update.requested_at)):
            starts.append([])
        starts[-1].append(update)
        of = update.requested_at or of
    return starts


def results_of_newest(records: Sequence[Mapping[str, Any]]) -> list[FlowResult]:
    """What each flow did in the newest start, over all attempts since; of one that was left out as done, what it did before.

    ``records``: of one request, oldest first.
    """
    before: dict[str, FlowResult] = {}
    results: list[FlowResult] = []
    for start in starts_of(fold_updates(records)):
        before |= {result.flow: result for result in results if result.state != FlowStatus.EXCLUDED}
        ids = {update.update_id for update in start}
        results = fold_flow_results(record for record in records if record["origin"]["update_id"] in ids)
    return [
        before.get(result.flow, result) if result.state == FlowStatus.EXCLUDED else result
        for result in results
    ]
