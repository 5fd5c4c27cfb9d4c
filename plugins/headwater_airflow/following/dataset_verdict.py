"""Whether a dataset is done within an update, and how that ended: decided from the event log alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult
from headwater.graph.manifest import Manifest


class Ending(StrEnum):
    """How a dataset's part in an update ended."""

    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    LEFT_OUT = "left_out"


class UpdateOutcome(StrEnum):
    """Where the task that runs the update stands, as far as those who wait for it care."""

    UNFINISHED = "unfinished"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_RUN = "not_run"

    @classmethod
    def of_task_state(cls, state: str | None) -> UpdateOutcome:
        """The outcome that a state of the task means."""
        outcomes = {
            "success": cls.SUCCEEDED,
            "failed": cls.FAILED,
            "upstream_failed": cls.FAILED,
            "skipped": cls.NOT_RUN,
            "removed": cls.NOT_RUN,
        }
        return outcomes.get(state or "", cls.UNFINISHED)


@dataclass(frozen=True)
class Verdict:
    """The end of a dataset's part in an update; ``rows`` are sums over its flows.

    ``update_id``: whose rows these are; ``of_updates``: in which its flows ended, whatever else is announced with it.
    """

    ending: Ending
    message: str
    input_rows: int = 0
    output_rows: int = 0
    dropped_rows: int = 0
    quarantined_rows: int = 0
    version: int | None = None
    update_id: str = ""
    of_updates: Sequence[str] = ()

    def payload(self) -> dict[str, Any]:
        """The verdict as plain values, for a trigger's event."""
        return {**asdict(self), "ending": str(self.ending)}

    @classmethod
    def of_payload(cls, payload: Mapping[str, Any]) -> Verdict:
        """The verdict that ``payload`` was made of."""
        return cls(**{**payload, "ending": Ending(payload["ending"])})

    def asset_extra(self) -> dict[str, Any]:
        """What an asset event tells those who are woken by it."""
        return {
            "version": self.version,
            "rows": self.output_rows,
            "dropped_rows": self.dropped_rows,
            "quarantined_rows": self.quarantined_rows,
            "update_id": self.update_id,
        }


@dataclass(frozen=True)
class WatchedDataset:
    """What to look for: the flows that fill a dataset, and every dataset it depends on.

    ``recomputed``: whether an update writes it whole.
    """

    name: str
    flows: tuple[str, ...]
    recomputed: bool
    ancestors: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest, name: str) -> WatchedDataset:
        """The dataset ``name`` of a manifest; raises KeyError where there is none."""
        entry = next((output for output in manifest.outputs if output.name == name), None)
        if entry is None:
            raise KeyError(name)
        flows = manifest.flows_into(name)
        ancestors: set[str] = set()
        waiting = manifest.upstream(name)
        while waiting:
            if (nearest := waiting.pop()) not in ancestors:
                ancestors.add(nearest)
                waiting += manifest.upstream(nearest)
        recomputed = any(not flow.streaming for flow in flows)
        return cls(name, tuple(flow.name for flow in flows), recomputed, frozenset(ancestors - {name}))


def decide(
    dataset: WatchedDataset,
    results: Sequence[FlowResult],
    outcome: UpdateOutcome,
    *,
    old_updates: Collection[str] = (),
    old_failures: Collection[str] = (),
) -> Verdict | None:
    """How the dataset ended, or None while more may come.

    Args:
        dataset: what is watched.
        results: of all flows of the request.
        outcome: where the task that runs the update stands; anything but unfinished makes this decide.
        old_updates: ids of updates that are ignored while the task is unfinished: they ran before the run
            was cleared.
        old_failures: ids of updates of which only completed flows count while the task is unfinished: they
            had failed before anybody watched, so it may be a cleared task that is about to try again.

    """
    mine = [result for result in results if result.dataset == dataset.name]
    over = outcome is not UpdateOutcome.UNFINISHED
    believed = [
        result
        for result in mine
        if result.finished
        and result.update_id not in old_updates
        and (result.state == FlowStatus.COMPLETED or result.update_id not in old_failures)
    ]
    for result in mine if over else believed:
        if result.state == FlowStatus.FAILED:
            return _verdict(Ending.FAILED, result.error or f"The flow {result.flow} failed.", mine)
    if over:
        return _at_the_end(dataset, mine, results, outcome)
    ended = {result.flow for result in believed if result.state != FlowStatus.STOPPED}
    if mine and ended.issuperset({*dataset.flows, *(result.flow for result in mine)}):
        return _ended(dataset, mine, results)
    return None


def _ended(dataset: WatchedDataset, mine: Sequence[FlowResult], results: Sequence[FlowResult]) -> Verdict:
    states = {result.state for result in mine}
    if states & {FlowStatus.COMPLETED, FlowStatus.STOPPED}:
        # A recomputed view may have lost its last row: that it was computed is what counts.
        if any(r.input_rows or r.output_rows or (dataset.recomputed and r.batches) for r in mine):
            return _verdict(Ending.UPDATED, "The table is up to date.", mine)
        return _verdict(Ending.UNCHANGED, "There was nothing new.", mine)
    failed = sorted(
        {
            r.dataset
            for r in results
            if r.dataset in dataset.ancestors and r.state == FlowStatus.FAILED and r.dataset
        }
    )
    if FlowStatus.SKIPPED in states and failed:
        return _verdict(Ending.LEFT_OUT, f"Not run: {', '.join(failed)} failed before it.", mine)
    if FlowStatus.SKIPPED in states:
        return _verdict(Ending.UNCHANGED, "There was nothing new.", mine)
    return _verdict(Ending.LEFT_OUT, "Not part of this update's selection.", mine)


def _at_the_end(
    dataset: WatchedDataset, mine: Sequence[FlowResult], results: Sequence[FlowResult], outcome: UpdateOutcome
) -> Verdict:
    """Decide when no more records will come, though the log may lack the end of some flows."""
    if outcome is UpdateOutcome.NOT_RUN:
        return _verdict(Ending.LEFT_OUT, "The update was not run.", mine)
    ended = {result.flow for result in mine if result.finished and result.state != FlowStatus.STOPPED}
    if outcome is UpdateOutcome.FAILED and not (mine and ended.issuperset(dataset.flows)):
        message = "The update ended before this table was done; see the log of its task."
        return _verdict(Ending.FAILED, message, mine)
    if any(not result.finished for result in mine):
        # Somebody marked the running task as a success. What was committed until then has to wake those who wait for it.
        wrote = any(result.output_rows for result in mine)
        message = "The update was ended before this table was done; the next one goes on from there."
        return _verdict(Ending.UPDATED if wrote else Ending.LEFT_OUT, message, mine)
    if mine:
        return _ended(dataset, mine, results)
    if results:
        return _verdict(Ending.LEFT_OUT, "Not part of this update's selection.", mine)
    return _verdict(Ending.UNCHANGED, "There was nothing new.", mine)


def _verdict(ending: Ending, message: str, mine: Sequence[FlowResult]) -> Verdict:
    return Verdict(
        ending,
        message,
        sum(result.input_rows for result in mine),
        sum(result.output_rows for result in mine),
        sum(result.dropped_rows for result in mine),
        sum(result.quarantined_rows for result in mine),
        max((result.version for result in mine if result.version is not None), default=None),
        mine[-1].update_id if mine else "",
        sorted({result.update_id for result in mine}),
    )
