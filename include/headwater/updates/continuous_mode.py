"""Whether an update keeps running, and what it can't be asked for then.

Decision 0172.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from headwater.definitions.trigger import Continuous
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection
from headwater.runtime.submit import LONG_RUNNING
from headwater.updates.conditions import NotForContinuous

_INSTEAD = "Stop the continuous update (`headwater stop`), and do it in an update that ends: `headwater run ... --no-continuous`."


def with_trigger(project: PipelineProject, continuous: bool | None) -> PipelineProject:
    """The project with the trigger that a run asks for; None: that of its spec."""
    if continuous is None or continuous == is_continuous(project):
        return project
    trigger = "continuous" if continuous else "available_now"
    return replace(project, spec=project.spec.model_copy(update={"trigger_spec": trigger}))


def is_continuous(project: PipelineProject) -> bool:
    """Whether its updates keep running."""
    return isinstance(project.spec.trigger, Continuous)


def spark_settings(project: PipelineProject, master: str | None = None) -> dict[str, str]:
    """The settings of Spark for an update: those of the spec, over what one that keeps running needs.

    ``master``: where it runs, if not where the spec says; raises as ``PipelineProject.spark_conf_on`` does.
    """
    own = project.spark_conf if master is None else project.spark_conf_on(master)
    return {**(LONG_RUNNING if is_continuous(project) else {}), **own}


def refuse_selection(project: PipelineProject, selection: Selection) -> None:
    """Raise NotForContinuous where a continuous update is asked for a part of the pipeline, or for a reset."""
    if is_continuous(project) and not selection.everything:
        raise NotForContinuous(
            "A continuous update runs the whole pipeline, and goes on from where it stands: it takes no tables, flows, full refresh "
            "or reset.",
            where=project.spec_file,
            remedy=_INSTEAD,
        )


def refuse_once_flows(
    project: PipelineProject, manifest: Manifest, completed: Callable[[], Collection[str]]
) -> None:
    """Raise NotForContinuous where a flow that runs once has not run yet. ``completed``: gives those that have."""
    if not is_continuous(project):
        return
    done = completed()
    waiting = sorted(flow.name for flow in manifest.flows if flow.once and flow.name not in done)
    if waiting:
        raise NotForContinuous(
            f"A flow that runs once has not run yet: {', '.join(waiting)}. A continuous update would start its table without it.",
            where=manifest.flow(waiting[0]).defined_at,
            remedy=f"Run it first. {_INSTEAD}",
        )
