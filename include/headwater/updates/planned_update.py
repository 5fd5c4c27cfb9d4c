"""What an update would do and read, from the manifest and the logs of sources: nothing is written, and no JVM is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.contract.printing import print_json
from headwater.contract.quantities import size
from headwater.delta_log.table_history import table_exists
from headwater.delta_log.versions import rows_of_table
from headwater.errors import HeadwaterError
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection, UpdatePlan, plan_update
from headwater.kafka.offsets import Connect
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import flow_lag
from headwater.storage.place import Place
from headwater.updates.failed_tables import with_failed


@dataclass(frozen=True)
class PlannedFlow:
    """A flow of the plan and what it would read. ``from_beginning``: all that its sources hold, whatever it has read."""

    flow: str
    dataset: str
    backlog: Backlog
    from_beginning: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The flow as JSON values."""
        sizes = self.backlog.as_dict()
        return {"flow": self.flow, "dataset": self.dataset, "from_beginning": self.from_beginning, **sizes}

    def __str__(self) -> str:
        return f"    {self.flow}: {self._reads}"

    @property
    def _reads(self) -> str:
        if self.from_beginning:
            return "reads all that its sources hold"
        if self.backlog.unknown:
            return f"how much it would read is not known: {self.backlog.unknown}"
        if self.backlog.moved is False:
            return "nothing to read"
        counts = {
            "records": self.backlog.records,
            "files": self.backlog.files,
            "commits": self.backlog.versions,
        }
        parts = [f"{count:,} {what}" for what, count in counts.items() if count is not None]
        parts += [size(self.backlog.bytes) or "0 B"] if self.backlog.bytes is not None else []
        return f"{', '.join(parts)} to read" if parts else "there is something to read"


@dataclass(frozen=True)
class PlannedUpdate:
    """The stages of an update, what each of its flows would read, and the rows of tables that would be emptied (None: not known)."""

    plan: UpdatePlan
    flows: tuple[PlannedFlow, ...]
    emptied: Mapping[str, int | None] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The plan for people: each stage, and below it its flows."""
        for reset in self.plan.resets:
            yield str(reset)
            if reset.dataset in self.emptied:
                rows = self.emptied[reset.dataset]
                count = "all rows" if rows is None else f"{rows:,} rows"
                yield f"    {count} go; those that its sources no longer hold do not come back"
        for stage in self.plan.refreshes:
            yield str(stage)
            yield from (str(flow) for flow in self.flows if flow.dataset == stage.dataset)

    def show(self, *, as_json: bool) -> None:
        """Print it to standard output: one line of JSON, or the lines."""
        if as_json:
            stages = [str(stage) for stage in (*self.plan.resets, *self.plan.refreshes)]
            flows = [flow.as_dict() for flow in self.flows]
            plan = {"flows": flows, "plan": stages, "emptied": dict(self.emptied)}
            print_json({"update_id": None, "state": "PLANNED", **plan})
            return
        print("\n".join(self.lines()) or "nothing to do")


def fitting_manifest(project: PipelineProject) -> Manifest | None:
    """The manifest of the last update, or the committed one, if it was made of these sources and these parameters."""
    for folder in (project.state_folder, project.folder):
        try:
            manifest = read_manifest(folder / FILE_NAME)
        except HeadwaterError:
            continue  # the other may do, else the graph is resolved again
        if (
            manifest is not None
            and manifest.fits(project)
            and manifest.parameters_hash == project.parameters_hash()
        ):
            return manifest
    return None


def planned_update(
    project: PipelineProject, manifest: Manifest, selection: Selection, *, connect: Connect | None = None
) -> PlannedUpdate:
    """What an update would do; raises what ``plan_update`` raises. ``connect``: as for ``flow_lag``."""
    plan = plan_update(manifest, with_failed(project, manifest, selection))
    reset_flows = {flow for stage in plan.resets for flow in stage.flows}
    flows = tuple(
        PlannedFlow(
            name,
            stage.dataset,
            flow_lag(project, manifest.flow(name), connect=connect).backlog,
            from_beginning=name in reset_flows or stage.whole,
        )
        for stage in plan.refreshes
        for name in stage.flows
    )
    emptied = {
        reset.dataset: _rows(manifest.table_path(project.warehouse, reset.dataset))
        for reset in plan.resets
        if reset.empty_table
    }
    return PlannedUpdate(plan, flows, emptied)


def _rows(table: Place) -> int | None:
    return rows_of_table(table) if table_exists(table) else 0
