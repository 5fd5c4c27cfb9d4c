"""What the programs that spark-submit runs have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from headwater.contract.failure_report import run_and_report
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.storage.retries import wait_for_servers


class ProjectArguments(Protocol):
    """Where a pipeline and its roots are."""

    @property
    def pipeline(self) -> str | Path:
        """The pipeline's folder."""

    @property
    def storage(self) -> str | Path | None:
        """The root of checkpoints and event logs."""

    @property
    def warehouse(self) -> str | Path | None:
        """The root of tables."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """Values for the pipeline's configuration."""


_Arguments = TypeVar("_Arguments", bound=ProjectArguments)


def run_program(
    argv: Sequence[str],
    parse: Callable[[Sequence[str]], _Arguments],
    answer: Callable[[PipelineProject, _Arguments], int],
) -> int:
    """Open the pipeline that the arguments name and answer them; an error becomes its report and exit code."""

    def action() -> int:
        given = parse(argv)
        wait_for_servers()
        project = open_project(
            given.pipeline, storage=given.storage, warehouse=given.warehouse, parameters=given.parameters
        )
        return answer(project, given)

    return run_and_report(action, as_json="--json" in argv)
