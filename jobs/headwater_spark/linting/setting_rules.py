"""Settings without effect, or with another one than expected: HW601, HW602, HW603, HW604."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.definitions.finding import Finding, finding
from headwater.definitions.flow_settings import TRIGGER, TRIGGER_INTERVAL, is_real_time
from headwater.definitions.platform_settings import idle_settings
from headwater.definitions.trigger import AvailableNow, Continuous, Trigger
from headwater.graph.declared_schedule import overruled
from headwater.graph.spec_file import read_source
from headwater_spark.linting.flow_case import FlowCase
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


def idle_settings_of_the_pipeline(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW601, in pipeline.yml."""
    spec = pipeline.project.spec
    for key, reason in _idle({**spec.spark, **spec.configuration}, spec.trigger).items():
        yield finding("HW601", f"{key} in pipeline.yml has no effect: {reason}.", "Take it out.")


def settings_of_lakeflow(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW603, a sentence for each setting of a file in Lakeflow's form."""
    for note in read_source(pipeline.project.spec_file).notes:
        yield finding("HW603", str(note), "`headwater convert` writes the pipeline.yml with these notes.")


def idle_clauses(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW601, of what statements say."""
    for idle in pipeline.registry.idle_clauses:
        message = f"{idle.clause} has no effect here: {idle.reason}."
        yield finding("HW601", message, "Take it out.", idle.location, idle.dataset)
    reason = overruled(pipeline.project.spec)
    for schedule in pipeline.registry.schedules if reason is not None else ():
        message = f"SCHEDULE ({schedule.cron}) has no effect here: {reason}."
        yield finding("HW601", message, "Take it out.", schedule.location, schedule.dataset)


def idle_settings_of_a_flow(case: FlowCase) -> Iterator[Finding]:
    """HW601, on a table or flow."""
    settings = {**case.dataset.table_properties, **case.flow.spark_conf}
    for key, reason in _idle(settings, case.pipeline.project.spec.trigger).items():
        yield case.find("HW601", f"{key} has no effect here: {reason}.", "Take it out.")


def real_time_in_updates_that_end(case: FlowCase) -> Iterator[Finding]:
    """HW604."""
    if is_real_time(case.flow.spark_conf) and not isinstance(case.pipeline.project.spec.trigger, Continuous):
        yield case.find(
            "HW604",
            "The flow asks for Spark's real-time mode, which only a continuous update has: updates of this pipeline end, and the flow "
            "runs in batches.",
            f"Write `trigger: continuous` into pipeline.yml, or take {TRIGGER} out of the flow's spark_conf.",
        )


def uncounted_rules(case: FlowCase) -> Iterator[Finding]:
    """HW602."""
    if case.frame.isStreaming or not case.dataset.written:
        return
    for view in case.views:
        if view.expectations:
            names = ", ".join(rule.name for rule in view.expectations)
            yield case.find(
                "HW602",
                f"The rules of the view {view.name!r} ({names}) act on the rows that it reads as a batch, and their counts are not "
                "recorded: those of streams are.",
                f"Put the rules on {case.dataset.name!r}, or make {view.name!r} a table, where they are counted.",
            )


def _idle(settings: Mapping[str, str], trigger: Trigger) -> dict[str, str]:
    idle = idle_settings(settings)
    if TRIGGER_INTERVAL in settings and isinstance(trigger, AvailableNow):
        idle[TRIGGER_INTERVAL] = (
            "the pipeline's trigger is available_now; it counts with processing_time and continuous"
        )
    return idle
