"""What an update records about itself: who requested what, what it runs on, and what the pipeline is."""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyspark
from pyspark.errors import PySparkException

from headwater import __version__
from headwater.definitions.dataset import DatasetKind
from headwater.event_log.definition_details import dataset_definition, flow_definition, sink_definition
from headwater.event_log.details import FlowStatus, UpdateState, create_update, update_progress, user_action
from headwater.graph.update_plan import Selection, UpdatePlan
from headwater.storage.place import Place
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.state_plan import state_times


def announce(
    context: UpdateContext,
    plan: UpdatePlan,
    selection: Selection,
    attempt: int,
    requested_at: datetime | None = None,
    *,
    announced_together: bool = False,
) -> None:
    """Write the first records of an update, up to the planned flows."""
    runtime = runtime_version()
    _record_start(context, selection, attempt, requested_at, runtime, announced_together=announced_together)
    context.events.emit(
        "update_progress", "The update holds the lease.", details=update_progress(UpdateState.CREATED)
    )
    context.events.emit(
        "update_progress", "The graph is resolved.", details=update_progress(UpdateState.INITIALIZING)
    )
    context.events.emit(
        "runtime_details",
        f"Headwater {__version__} on Spark {pyspark.__version__}.",
        details={"runtime_details": {"runtime_version": runtime}},
    )
    _describe_datasets(context)
    epochs = _epochs(context, plan)
    _describe_flows(context, epochs)
    for stage in plan.refreshes:
        for flow in stage.flows:
            outcome = FlowOutcome(flow, stage.dataset)
            context.flow_event(outcome, FlowStatus.QUEUED, f"{flow} is planned.", epoch=epochs[flow])
    for entry in context.pipeline.manifest.flows:
        if entry.target in plan.excluded or entry.name in plan.excluded_flows:
            message = f"{entry.name} is not part of this update."
            context.flow_event(FlowOutcome(entry.name, entry.target), FlowStatus.EXCLUDED, message)


def _record_start(
    context: UpdateContext,
    selection: Selection,
    attempt: int,
    requested_at: datetime | None,
    runtime: Mapping[str, str],
    *,
    announced_together: bool,
) -> None:
    user, name = user_name(), context.pipeline.project.spec.name
    started = user_action("START", user, update_id=context.update_id)
    context.events.emit("user_action", f"{user} started an update of {name}.", details=started)
    details = create_update(
        full_refresh=selection.full_refresh_all,
        refresh_selection=selection.tables,
        full_refresh_selection=selection.full_refresh,
        refresh_flow_selection=list(selection.flows),
        refresh_failed=selection.refresh_failed,
        requested_at=requested_at,
        announced_together=announced_together,
        reset_checkpoint_selection=list(selection.reset_flows),
        attempt=attempt,
        run_as=user,
        runtime_version=runtime,
        source_hash=context.pipeline.manifest.source_hash,
        parameters=context.pipeline.project.shown_parameters,
        started_at=datetime.now(UTC).isoformat(),
    )
    message = f"Update {context.update_id} of {name} was started."
    context.events.emit("create_update", message, details=details)


def record_stop(context: UpdateContext) -> None:
    """Record, once, that somebody told the update to stop: it may be killed before it has.

    Decision 0188.
    """
    stop = context.stop_requested
    if not stop.signalled or stop.recorded:
        return
    stop.recorded = True
    details = user_action("CANCEL", user_name(), update_id=context.update_id)
    context.events.emit("user_action", "The update was told to stop.", details=details)


def user_name() -> str:
    """The name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container the user id may have no name
        return "unknown"


def runtime_version() -> dict[str, str]:
    """What the update runs on."""
    return {
        "headwater_version": __version__,
        "spark_version": pyspark.__version__,
        "python_version": platform.python_version(),
    }


def _describe_datasets(context: UpdateContext) -> None:
    manifest = context.pipeline.manifest
    for entry in manifest.datasets:
        if entry.kind is DatasetKind.SINK:
            context.events.emit(
                "sink_definition",
                f"The sink {entry.name} is defined as {entry.sink_format}.",
                dataset=entry.name,
                sink=entry.name,
                details=sink_definition(entry),
            )
            continue
        context.events.emit(
            "dataset_definition",
            f"{entry.name} is defined as a {entry.kind.value.replace('_', ' ')}.",
            dataset=entry.name,
            details=dataset_definition(manifest, entry),
        )


def _epochs(context: UpdateContext, plan: UpdatePlan) -> dict[str, int]:
    """The epoch in which each flow will run: its id in the log (``origin.flow_id``) is that epoch's from its first record."""
    resets = {(stage.dataset, flow) for stage in plan.resets for flow in stage.flows}
    return {
        flow.name: context.next_epoch(flow, reset=(flow.target, flow.name) in resets)
        for flow in context.pipeline.manifest.flows
    }


def _describe_flows(context: UpdateContext, epochs: Mapping[str, int]) -> None:
    """Lineage: what each flow reads and writes."""
    manifest, stubs = context.pipeline.manifest, context.pipeline.evaluation.stubs
    for entry in manifest.flows:
        flow = context.pipeline.flow(entry.name)
        is_sink = manifest.dataset(entry.target).kind is DatasetKind.SINK
        context.events.emit(
            "flow_definition",
            f"{entry.name} reads {', '.join(entry.inputs) or 'its sources'} and writes {entry.target}.",
            flow=entry.name,
            dataset=entry.target,
            sink=entry.target if is_sink else None,
            epoch=epochs[entry.name],
            details=flow_definition(
                manifest,
                entry,
                kind=flow.kind.value,
                explain_text=_explained(context.pipeline.evaluation.frames.get(entry.name), stubs),
                spark_conf=context.pipeline.evaluation.settings_of(flow),
                comment=flow.comment,
                time_columns=state_times(context.pipeline.evaluation.frames.get(entry.name)),
            ),
        )


def _explained(frame: Any, stubs: Place) -> str | None:
    """The resolved plan of a query; the stubs of the pipeline's tables appear under the tables' names."""
    if frame is None:
        return None
    try:
        text = str(frame._jdf.queryExecution().analyzed().toString())  # noqa: SLF001 - no public API in Python
    except PySparkException:
        return None
    return re.sub(rf"(?:file:)?{re.escape(str(stubs))}/\w+/", "", text)
