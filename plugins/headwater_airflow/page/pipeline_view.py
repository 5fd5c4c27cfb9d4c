"""What the page shows of a pipeline. Every part that can't be read says so; the others are still shown."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from headwater.errors import HeadwaterError
from headwater.event_log.details import UpdateState
from headwater.event_log.redaction import redact_text
from headwater.event_log.update_summary import UpdateSummary
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_ids import known_homes, taking_turns
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.checkpoint_health import CheckpointHealth, pipeline_health
from headwater.metrics.freshness import Freshness, freshness_as_far_as_known
from headwater_airflow.conditions.condition import observed_manifest
from headwater_airflow.page.dataset_view import DatasetView, dataset_view
from headwater_airflow.page.graph_picture import Picture, picture
from headwater_airflow.page.history import History, read_history
from headwater_airflow.page.projects import PipelineEntry

# An update without a record for this long has probably been killed.
_SILENCE = timedelta(minutes=10)
_T = TypeVar("_T")
_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="headwater-page")


@dataclass(frozen=True)
class PipelineView:
    """A pipeline. ``state``: of its newest update, in small letters; ``new``, ``silent`` or ``broken`` besides.

    ``troubles``: what could not be read, as sentences; ``notes``: why some of it may be out of date.
    """

    dag_id: str
    folder: str
    state: str
    update: UpdateSummary | None = None
    datasets: tuple[DatasetView, ...] = ()
    graph: Picture | None = None
    history: History = field(default_factory=History)
    manifest: Manifest | None = None
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> list[DatasetView]:
        """The datasets that lie on disk."""
        return [dataset for dataset in self.datasets if dataset.is_stored]

    @property
    def oldest(self) -> Freshness | None:
        """The freshness of the table whose data is oldest."""
        dated = [d.freshness for d in self.datasets if d.freshness and d.freshness.seconds is not None]
        return max(dated, key=lambda entry: entry.seconds or 0, default=None)

    @property
    def uptime(self) -> float | None:
        """For how many seconds the newest update has run; None where it does not run."""
        if self.update is None or self.state != UpdateState.RUNNING.lower():
            return None
        return (datetime.now(UTC) - self.update.started).total_seconds()

    @property
    def failed(self) -> list[DatasetView]:
        """The datasets that failed."""
        return [dataset for dataset in self.datasets if dataset.state == "failed"]

    @property
    def sick(self) -> list[DatasetView]:
        """The datasets with a sick checkpoint."""
        return [dataset for dataset in self.datasets if dataset.sick]

    @property
    def quarantined(self) -> int:
        """Rows that were quarantined in the newest batches."""
        return sum(dataset.quarantined for dataset in self.datasets)


def pipeline_view(pipeline: PipelineEntry) -> PipelineView:
    """Read everything that the page shows of a pipeline; where that fails as a whole, a view that says so."""
    troubles: list[str] = []
    view = read_part(lambda: _view(pipeline), None, "What is recorded of it", troubles)
    return view or PipelineView(pipeline.dag_id, pipeline.folder, "broken", troubles=tuple(troubles))


def _view(pipeline: PipelineEntry) -> PipelineView:
    project = pipeline.project
    if project is None:
        return PipelineView(
            pipeline.dag_id,
            pipeline.folder,
            "broken",
            troubles=(redact_text(pipeline.trouble or "It can't be read."),),
        )
    troubles: list[str] = []
    manifest = read_part(lambda: observed_manifest(project), None, "The manifest", troubles)
    troubles_of_graph = len(troubles)
    history = read_part(lambda: read_history(project.state_folder), History(), "The event log", troubles)
    # Of a log that can't be read nothing is known: the pipeline is not new for that.
    state = "broken" if len(troubles) > troubles_of_graph else _state(history)
    notes = _notes(project, manifest, history, troubles)
    if manifest is None and not troubles_of_graph:
        notes = ("The graph is not known yet: no update has run, and no manifest is committed.", *notes)
    if manifest is None:
        return PipelineView(
            pipeline.dag_id,
            pipeline.folder,
            "broken" if troubles else state,
            history.last_update,
            history=history,
            troubles=tuple(troubles),
            notes=notes,
        )
    return PipelineView(
        pipeline.dag_id,
        pipeline.folder,
        state,
        history.last_update,
        _datasets(project, manifest, history, troubles),
        read_part(lambda: picture(manifest), None, "The graph", troubles),
        history,
        manifest,
        tuple(troubles),
        notes,
    )


def _datasets(
    project: PipelineProject, manifest: Manifest, history: History, troubles: list[str]
) -> tuple[DatasetView, ...]:
    no_ages: list[Freshness] = []
    no_health: list[CheckpointHealth] = []
    ages_read = _pool.submit(
        read_part, lambda: freshness_as_far_as_known(project, manifest), no_ages, "The tables", troubles
    )
    health = read_part(lambda: pipeline_health(project, manifest), no_health, "The checkpoints", troubles)
    ages = {entry.dataset: entry for entry in ages_read.result()}
    troubles.extend(f"{entry.dataset}: {entry.unknown}" for entry in ages.values() if entry.unknown)
    views = _pool.map(
        lambda entry: dataset_view(project, manifest, entry, history, ages.get(entry.name), health),
        manifest.datasets,
    )
    return tuple(views)


def _state(history: History) -> str:
    update = history.last_update
    if update is None:
        return "new"
    if update.ended is None and _is_silent(history):
        return "silent"
    return update.state.lower()


def _is_silent(history: History) -> bool:
    if history.newest is None:
        return True
    newest = history.newest if history.newest.tzinfo else history.newest.replace(tzinfo=UTC)
    return datetime.now(UTC) - newest > _SILENCE


def _notes(
    project: PipelineProject, manifest: Manifest | None, history: History, troubles: list[str]
) -> tuple[str, ...]:
    no_turns: str | None = None
    turns = read_part(
        lambda: taking_turns(known_homes(project.state_folder)), no_turns, "Its former folders", troubles
    )
    notes = [turns] if turns else []
    if manifest is not None and read_part(lambda: not manifest.fits(project), False, "The sources", troubles):
        notes.append("The sources have changed since: the graph below is that of the last update.")
    update = history.last_update
    if update is not None and update.ended is None and _is_silent(history):
        minutes = _SILENCE.total_seconds() / 60
        notes.append(f"The update has not written a record for {minutes:g} minutes: its driver may be gone.")
    return tuple(notes)


def read_part(ask: Callable[[], _T], otherwise: _T, what: str, troubles: list[str]) -> _T:
    """The result of ``ask``; where it fails, ``otherwise``, with the reason among the troubles."""
    try:
        return ask()
    except HeadwaterError as error:
        troubles.append(redact_text(f"{what} can't be read: {error.what} {error.remedy}".strip()))
    except Exception as error:  # a page that fails as a whole would hide the rest
        troubles.append(f"{what} can't be read ({type(error).__name__}).")
    return otherwise
