"""One dataset in one request: what is known now, and the lines to log about it.

Decision 0157.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from headwater.errors import InvalidSpec
from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult, fold_flow_results
from headwater.event_log.reader import events
from headwater.event_log.update_summary import UpdateSummary
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.following.dataset_verdict import UpdateOutcome, Verdict, WatchedDataset, decide
from headwater_airflow.following.request import request_id
from headwater_airflow.following.unannounced import with_unannounced
from headwater_airflow.following.update_record import request_updates
from headwater_airflow.following.update_watch import request_results
from headwater_airflow.roots import pipeline_project


@dataclass
class DatasetProgress:
    """Follows a dataset's flows in the event log; every call to ``look`` may block on files."""

    project: PipelineProject
    dataset: WatchedDataset
    request: str
    since: datetime | None = None
    _old_updates: frozenset[str] = frozenset()
    _judged: frozenset[str] = frozenset()
    _old_failures: frozenset[str] | None = None
    _reported: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def open(
        cls, pipeline: str, dataset: str, dag_id: str, run_id: str, since: datetime | None = None
    ) -> DatasetProgress:
        """Follow ``dataset`` in the run of a DAG; ``since``: when the run began, or was cleared last.

        Raises:
            InvalidSpec: if the manifest no longer has this dataset.

        """
        project = pipeline_project(pipeline)
        manifest = read_manifest(project.folder / FILE_NAME)
        try:
            watched = WatchedDataset.of(manifest, dataset) if manifest else None
        except KeyError:
            watched = None
        if watched is None:
            raise InvalidSpec(
                f"{FILE_NAME} does not have the table {dataset!r} any more.",
                where=project.folder / FILE_NAME,
                remedy="Wait until the DAG has been parsed again, then trigger a new run.",
            )
        return cls(project, watched, request_id(dag_id, run_id), since)

    def look(self, outcome: UpdateOutcome) -> Verdict | None:
        """The dataset's end, if it has come. Ask for ``outcome`` first, so that no record is missed."""
        results = request_results(self.project.state_folder, self.request)
        seen = frozenset(result.update_id for result in results)
        if not seen <= self._judged:
            self._old_updates, self._judged = self._updates_before(), seen
        if self._old_failures is None:
            self._old_failures = frozenset(
                result.update_id for result in results if result.state == FlowStatus.FAILED
            )
        if outcome is UpdateOutcome.FAILED and seen <= self._old_updates:
            # Cleared, the update failed before it began anew: what it did before is none of this start.
            results = ()
        verdict = decide(
            self.dataset, results, outcome, old_updates=self._old_updates, old_failures=self._old_failures
        )
        if verdict is None:
            return None
        return with_unannounced(verdict, self.dataset, self.project.state_folder, self.request)

    def _updates_before(self) -> frozenset[str]:
        """Return the ids of the request's updates from before the run was cleared."""
        if self.since is None:
            return frozenset()
        updates = request_updates(self.project, self.request)
        return frozenset(update.update_id for update in updates if is_of_another_start(update, self.since))

    def news(self) -> Iterator[str]:
        """A line for each flow that moved on since the last call."""
        for result in request_results(self.project.state_folder, self.request):
            if result.dataset != self.dataset.name:
                continue
            now = (result.state, result.batches)
            if self._reported.get(result.flow) != now:
                self._reported[result.flow] = now
                yield progress_line(result)


def is_of_another_start(update: UpdateSummary, since: datetime) -> bool:
    """Whether an update of a run's request is not of the start ``since``, but from before the run was cleared.

    Both times come from the scheduler, so they are equal or not, whatever clock the driver's machine has. An older
    log does not have the one of the update: there, the driver's clock decides.
    """
    return update.started < since if update.requested_at is None else update.requested_at != since


def results_before_newest(project: PipelineProject, request: str, since: datetime | None) -> list[FlowResult]:
    """What the updates of a request did before its newest one, as far as they are of the start ``since``."""
    before = {
        update.update_id
        for update in request_updates(project, request)[:-1]
        if since is None or not is_of_another_start(update, since)
    }
    kinds = ("flow_progress", "planning_information")
    records = events(project.state_folder, request_id=request, event_type=kinds) if before else []
    return fold_flow_results(record for record in records if record["origin"]["update_id"] in before)


def progress_line(result: FlowResult) -> str:
    """A flow's state and counts in a line of a log."""
    parts = [f"{result.flow}: {result.state}", f"{result.input_rows} rows in, {result.output_rows} out"]
    if result.dropped_rows:
        parts.append(f"{result.dropped_rows} dropped")
    if result.quarantined_rows:
        parts.append(f"{result.quarantined_rows} quarantined")
    if result.batches:
        parts.append(f"{result.batches} batches")
    if result.backlog_records is not None:
        parts.append(f"{result.backlog_records} left")
    return ", ".join(parts)
