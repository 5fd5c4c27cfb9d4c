"""The preflight checks of a flow inside an update: what they find is refused or repaired, and recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from typing import Any

from headwater import __version__
from headwater.checkpoints.layout import FlowState
from headwater.delta_log.table_history import epochs_written
from headwater.doctor.start_facts import flow_start
from headwater.errors import HeadwaterError, SourceUnreachable
from headwater.event_log.details import operation_progress
from headwater.preflight.change_memory_checks import change_memory_files_are_gone
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, Check, examine, mended
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.quarantine_checks import quarantine_files_are_gone
from headwater.preflight.sink_checks import commit_is_damaged, table_log_has_a_hole
from headwater.preflight.source_checks import last_offsets, offset_of, source_identity
from headwater.preflight.table_file_checks import MOST_NAMED, files_are_gone
from headwater.storage.listing import looked_over
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.state_plan import state_plan

# As Spark and delta-rs name the files of a table.
_DATA_FILE = re.compile(r"\bpart-[\w.-]+\.parquet\b")
_OF_FILES = (change_memory_files_are_gone, files_are_gone, quarantine_files_are_gone)


def check_flow(run: FlowRun, state: FlowState, checks: tuple[Check, ...] = CHECKS) -> FlowStart:
    """Make sure that a flow may start; what can be repaired without losing or doubling a row is repaired and recorded.

    Raises:
        RefusedForSafety: the first finding that forbids the start; nothing was read.
    """
    pipeline, table = run.context.pipeline, run.delta_table
    with looked_over(run.checkpoint.folder):
        start = flow_start(pipeline.project, pipeline.manifest, run.entry)
        start = replace(
            start,
            state=state,
            table=table,
            # The id of a table whose log is damaged can't be read; a check reports it.
            sink_id=start.sink_id if table is not None else run.destination_id(),
            plan=_comparable_plan(run, state),
        )
        damages = examine(start, checks)
    for damage, repair in mended(damages, run.context.check_lease):
        run.context.say(f"MENDED     {run.name}: {repair}", flow=run.name)
        run.emit(
            "operation_progress",
            f"{damage.error.what} {repair[:1].upper()}{repair[1:]}.",
            level="WARN",
            epoch=state.epoch,
            details=operation_progress(
                "CHECKPOINT_MENDED", "COMPLETED", None, condition=damage.condition, done=repair
            ),
        )
    return start


def refusal_of_log(run: FlowRun, error: Exception) -> Exception:
    """The finding that says why the log of a flow's table can't be read; another error as it is."""
    if not isinstance(error, SourceUnreachable):
        return error
    pipeline = run.context.pipeline
    try:
        start = flow_start(pipeline.project, pipeline.manifest, run.entry)
    except HeadwaterError:
        return error  # of the flow's own state, which the table's log does not depend on
    damages = examine(start, (table_log_has_a_hole, commit_is_damaged))
    return next((damage.error for damage in damages), error)


def refusal_of_files(run: FlowRun, error: HeadwaterError, messages: Sequence[str]) -> HeadwaterError:
    """The finding that says what is missing beside a file that ``messages`` of a failure name; another error as it is.

    A start looks at the newest files of the table, of its quarantine and of what AUTO CDC remembers; here all are looked at.
    """
    names = {name for message in messages for name in _DATA_FILE.findall(message)}
    if not names:
        return error
    pipeline = run.context.pipeline
    try:
        start = flow_start(pipeline.project, pipeline.manifest, run.entry, deep=True, brokers=False)
    except HeadwaterError:
        return error  # of the flow's own state, which these files do not depend on
    for damage in examine(start, _OF_FILES):
        named = any(name in fact for fact in damage.evidence for name in names)
        if named or len(damage.evidence) == MOST_NAMED:
            return damage.error
    return error


def bounded_state(run: FlowRun) -> FlowState:
    """The state of a flow that is not a stream and may start; raises RefusedForSafety.

    Where its state is lost, the table's log has the epoch under which its rows were written.
    """
    state, table = run.checkpoint.read_state(), run.delta_table
    check_flow(run, state or FlowState(), CHECKS_OF_ONCE_FLOWS)
    written = epochs_written(table, *run.identity.names) if table is not None else []
    return state or run.checkpoint.update_state(epoch=max(written, default=0))


def source_identities(start: FlowStart, before: FlowState) -> tuple[dict[str, Any], ...]:
    """The identities of a flow's sources, for its state. ``before``: that of the live epoch, which the update may have opened."""
    sources = start.sources or ()
    reads_tables = any(source.table is not None for source in sources)
    offsets = last_offsets(replace(start, state=before)) if reads_tables else None
    return tuple(
        source_identity(source, seen, None if offsets is None else offset_of(start, offsets, index))
        for index, (source, seen) in enumerate(list(zip_longest(sources, before.sources))[: len(sources)])
    )


def versions(context: UpdateContext) -> dict[str, str]:
    """The versions that a flow's state is written under."""
    return {"headwater": __version__, "spark": str(context.spark.version), "delta": _delta_version()}


def plan_of(run: FlowRun) -> tuple[str, ...]:
    """The stateful operators of a flow."""
    return state_plan(run.context.pipeline.evaluation.frames[run.name])


def _comparable_plan(run: FlowRun, state: FlowState) -> tuple[str, ...] | None:
    # Another version of Spark may describe the same operators differently.
    same_version = state.versions.get("spark") == str(run.context.spark.version)
    return plan_of(run) if same_version and not run.flow.once else None


@lru_cache(maxsize=1)
def _delta_version() -> str:
    try:
        return version("delta-spark")
    except PackageNotFoundError:
        return "unknown"
