"""Closes the records of updates whose driver died without a report.

A killed driver writes nothing. The next holder of the pipeline's lease knows that no other update can be running, and
writes the missing records: a terminal one for each flow, and one for the update.

Decision 0080.
Decision 0188.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headwater.errors import FlowInterrupted
from headwater.event_log.details import FlowStatus, UpdateState, flow_progress, update_progress
from headwater.event_log.event import Event
from headwater.event_log.flow_result import FlowResult
from headwater.event_log.reader import events as records_of
from headwater.event_log.reader import flow_results, updates
from headwater.event_log.writer import EventLogWriter
from headwater.storage.place import Place

# More unclosed updates than this can only come from a version that did not close any.
_LOOK_BACK = 20


def close_dead_updates(
    state_folder: Place,
    pipeline_id: str,
    pipeline_name: str,
    request_id: str | None = None,
    listener: Callable[[Sequence[Event]], None] | None = None,
) -> list[str]:
    """Write the terminal records of updates that have none. Call it only while holding the pipeline's lease.

    Args:
        request_id: of the update that now begins. Flows of an earlier attempt of the same request are marked as to be
            retried, so that tasks that follow the request keep waiting.
        listener: is given the records, once they are in the log.

    Returns:
        The ids of the updates that were closed.

    """
    # An update that found no news holds no lease and is never seen CREATED: it is left alone.
    started = {str(UpdateState.QUEUED), *(str(state) for state in UpdateState if state.terminal)}
    dead = [u for u in updates(state_folder, _LOOK_BACK) if u.ended is None and u.state not in started]
    for update in dead:
        again = request_id is not None and update.request_id == request_id
        flows = flow_results(state_folder, update_id=update.update_id)
        with EventLogWriter(
            state_folder, pipeline_id, pipeline_name, update.update_id, update.request_id
        ) as events:
            if listener is not None:
                events.subscribe(listener)
            close_update(
                events, flows, will_retry=again, canceled=_was_told_to_stop(state_folder, update.update_id)
            )
    return [update.update_id for update in dead]


def _was_told_to_stop(state_folder: Place, update_id: str) -> bool:
    records = records_of(state_folder, update_id=update_id, event_type="user_action")
    return any(record["details"].get("user_action", {}).get("action") == "CANCEL" for record in records)


def close_update(
    events: EventLogWriter,
    flows: Iterable[FlowResult],
    *,
    will_retry: bool = False,
    error: BaseException | None = None,
    canceled: bool = False,
) -> None:
    """Write the terminal records that are missing: of the flows that have none, and of the update.

    Args:
        will_retry: whether the update that now begins is another attempt of the same request.
        error: what ended it; a driver that died without a word, if left out.
        canceled: whether somebody had told it to stop, and it was killed on the way: nothing has failed.
    """
    if canceled:
        _close_canceled(events, flows)
        return
    cause = error or FlowInterrupted(
        "The driver of the update ended without a report: it was killed, or its machine failed.",
        remedy="The next update goes on from where it stood.",
    )
    close_flows(events, flows, will_retry=will_retry, error=cause)
    events.emit(
        "update_progress",
        "The update failed: it ended prematurely.",
        level="ERROR",
        details=update_progress(UpdateState.FAILED),
        error=cause,
    )


def _close_canceled(events: EventLogWriter, flows: Iterable[FlowResult]) -> None:
    for flow in flows:
        if not FlowStatus(flow.state).terminal:
            events.emit(
                "flow_progress",
                f"{flow.flow} was interrupted while the update was stopping; it continues from its position.",
                flow=flow.flow,
                dataset=flow.dataset,
                epoch=flow.epoch,
                details=flow_progress(FlowStatus.STOPPED),
            )
    events.emit(
        "update_progress",
        "The update was told to stop, and its driver was killed before every flow had ended.",
        details=update_progress(UpdateState.CANCELED),
    )


def close_flows(
    events: EventLogWriter, flows: Iterable[FlowResult], *, will_retry: bool, error: BaseException
) -> None:
    """Write the terminal records of those flows that have none: FAILED for what had begun, else STOPPED."""
    for flow in flows:
        if FlowStatus(flow.state).terminal:
            continue
        begun = flow.state != FlowStatus.QUEUED
        status = FlowStatus.FAILED if begun else FlowStatus.STOPPED
        events.emit(
            "flow_progress",
            f"{flow.flow} {'was interrupted' if begun else 'was never started'}: the update ended prematurely.",
            level="ERROR" if begun else "INFO",
            flow=flow.flow,
            dataset=flow.dataset,
            epoch=flow.epoch,
            details=flow_progress(status, will_retry=will_retry),
            error=error if begun else None,
        )
