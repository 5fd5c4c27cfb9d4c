"""The pipelines that there are, by the id that names their DAG."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.contract.driver_report import ReportedError
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.roots import pipeline_folders, pipeline_project

# What may stand in an address of the page: ids of DAGs and pipelines, names of flows.
URL_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,249}$"
# What other DAGs of a pipeline have behind its id.
_BESIDE = ("_checks", "_maintenance", "_backfill", "_repair")


@dataclass(frozen=True)
class PipelineEntry:
    """A folder with a pipeline. ``trouble``: why it can't be read; ``project`` is None then."""

    folder: str
    project: PipelineProject | None = None
    trouble: str | None = None

    @property
    def dag_id(self) -> str:
        """The id of its DAG; the folder's name where the spec can't be read."""
        return self.project.spec.dag_id if self.project else self.folder


def all_projects() -> list[PipelineEntry]:
    """Every folder below HEADWATER_PIPELINES that has a spec, by name."""
    pipelines = [_open(name) for name in pipeline_folders()]
    return [_checked(entry, pipelines) for entry in pipelines]


def project_of(dag_id: str) -> PipelineEntry | None:
    """The pipeline of a DAG, or of one beside it; None where it has none."""
    # Where two want one id, the first has it, as in the DAGs of all pipelines.
    by_id = {entry.dag_id: entry for entry in reversed(all_projects())}
    names = [dag_id, *(dag_id.removesuffix(suffix) for suffix in _BESIDE)]
    return next((by_id[name] for name in names if name in by_id), None)


def _open(folder: str) -> PipelineEntry:
    try:
        return PipelineEntry(folder, pipeline_project(folder, alone=True))
    except Exception as error:
        return PipelineEntry(folder, trouble=trouble_in_words(error))


def _checked(entry: PipelineEntry, entries: list[PipelineEntry]) -> PipelineEntry:
    """The pipeline, or its trouble where another folder has one of the same id: one's state would be shown as the other's."""
    ids = [other.project.pipeline_id for other in entries if other.project is not None]
    if entry.project is None or ids.count(entry.project.pipeline_id) == 1:
        return entry
    try:
        pipeline_project(entry.folder)
    except Exception as error:
        return PipelineEntry(entry.folder, trouble=trouble_in_words(error))
    return entry


def trouble_in_words(error: Exception) -> str:
    """Why a pipeline can't be read, with its file and line where that is known."""
    if not isinstance(error, HeadwaterError):
        return quoted(error)
    reported = ReportedError.of(error)
    return f"{reported.message} ({reported.where})" if reported.where else reported.message
