"""Rows that nobody was woken for: an update wrote them and ended badly, or no run of a DAG requested it.

Such a table has no task that would have announced them, or a red one. The next update of a DAG run finds nothing new in it. What it
announces is decided from the event log alone, as all else is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.flow_result import FlowResult
from headwater.event_log.reader import events, flow_results
from headwater.event_log.update_summary import UpdateSummary, fold_updates
from headwater.storage.place import Place
from headwater_airflow.following.dataset_verdict import Ending, Verdict, WatchedDataset
from headwater_airflow.following.starts import starts_of
from headwater_airflow.following.update_watch import log_version

# As many of the newest updates are looked at: more that nobody announced in a row do not go unnoticed.
_LOOK_BACK = 20
_RECORDS_PER_UPDATE = 10
# Where one task announces all tables of a run, it does so when the whole update has ended well.
TOGETHER = "announced_together"


def with_unannounced(
    verdict: Verdict,
    dataset: WatchedDataset,
    state_folder: Place,
    request: str,
    *,
    of_newest: bool = False,
) -> Verdict:
    """The verdict on a table; where that is unchanged, and rows of earlier updates were not announced, it is updated with those.

    Args:
        verdict: on the part of the table in the updates of the request since its run was started or cleared last.
        dataset: the table.
        state_folder: of its pipeline.
        request: the id of the run's request.
        of_newest: the verdict is on the newest of these updates alone.

    """
    if verdict.ending is not Ending.UNCHANGED:
        return verdict
    rows = _unannounced(dataset, state_folder, request, of_newest=of_newest)
    wrote = [result for result in rows if _wrote(dataset, result)]
    if not wrote:
        return verdict
    return replace(
        verdict,
        ending=Ending.UPDATED,
        message="Nothing new; rows of an earlier update, which nobody was woken for, are announced now.",
        input_rows=verdict.input_rows + sum(result.input_rows for result in rows),
        output_rows=verdict.output_rows + sum(result.output_rows for result in rows),
        dropped_rows=verdict.dropped_rows + sum(result.dropped_rows for result in rows),
        quarantined_rows=verdict.quarantined_rows + sum(result.quarantined_rows for result in rows),
        version=max(
            (v for v in (verdict.version, *(r.version for r in rows)) if v is not None), default=None
        ),
        update_id=wrote[0].update_id,
    )


def _unannounced(
    dataset: WatchedDataset, state_folder: Place, request: str, *, of_newest: bool
) -> list[FlowResult]:
    """What was written since the table was announced last, the newest update first."""
    version = log_version(state_folder)
    before, together = _updates_before(state_folder, request, version, of_newest=of_newest)
    rows: list[FlowResult] = []
    if all(_of_a_run(update) and update.state == UpdateState.COMPLETED for update in before):
        return rows
    for update in reversed(before):
        mine = [
            result
            for result in _results_of(
                state_folder, update.update_id, version if update.ended is None else None
            )
            if result.dataset == dataset.name and result.state != FlowStatus.EXCLUDED
        ]
        done = bool(mine) and all(result.state == FlowStatus.COMPLETED for result in mine)
        announces = update.state == UpdateState.COMPLETED or update.update_id not in together
        if done and announces and _of_a_run(update):
            break
        rows += mine
    return rows


@lru_cache(maxsize=32)
def _updates_before(
    state_folder: Place,
    request: str,
    version: int,  # noqa: ARG001 - part of the key
    *,
    of_newest: bool,
) -> tuple[tuple[UpdateSummary, ...], frozenset[str]]:
    """The updates before the newest of a request, oldest first, and which of them announce all tables together.

    Those of the same start of its run are not among them, unless the verdict is ``of_newest`` alone. ``version``: of the event log;
    what is kept is for this one.
    """
    records = events(
        state_folder,
        event_type=("create_update", "update_progress"),
        limit=_LOOK_BACK * _RECORDS_PER_UPDATE,
    )
    updates = fold_updates(records)
    mine = [update for update in updates if update.request_id == request]
    own = mine[-1:] if of_newest or not mine else starts_of(mine)[-1]
    before = [update for update in updates[: updates.index(own[-1])] if update not in own] if own else []
    together = frozenset(
        record["origin"]["update_id"]
        for record in records
        if (record["details"].get("create_update") or {}).get(TOGETHER) is True
    )
    return tuple(before[-_LOOK_BACK:]), together


@lru_cache(maxsize=64)
def _results_of(state_folder: Place, update_id: str, version: int | None) -> tuple[FlowResult, ...]:  # noqa: ARG001 - part of the key
    """What each flow did in an update. One that has ended has no more records; for another, ``version`` is that of the log."""
    return tuple(flow_results(state_folder, update_id=update_id))


def _of_a_run(update: UpdateSummary) -> bool:
    """Whether a DAG run asked for it: what people and other programs start by the command line is announced by nobody."""
    return update.requested_at is not None


def _wrote(dataset: WatchedDataset, result: FlowResult) -> bool:
    changed = result.changes or {}
    whole = dataset.recomputed and result.state == FlowStatus.COMPLETED and result.batches
    return bool(result.output_rows or changed.get("upserted") or changed.get("deleted") or whole)
