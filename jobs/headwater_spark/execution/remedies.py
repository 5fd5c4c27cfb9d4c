"""Remedies for a failed flow: restart it without unreadable files, with the current columns, or later. Decision 0021."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headwater.definitions.expectation import quarantines
from headwater.definitions.flow_settings import FIRST_WAIT, LONGEST_WAIT, flow_retries, retry_wait
from headwater.errors import LeaseLost, SchemaChanged, SourceSchemaChanged, UnknownFields
from headwater.event_log.details import FlowStatus, operation_progress
from headwater.updates import backoff
from headwater.updates.backoff import Backoff
from headwater_spark.execution.column_names import take_special_names
from headwater_spark.execution.continuous_run import ContinuousRun
from headwater_spark.execution.failures import cause_messages, causes_of_error, flow_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.restarts import Remedy, Start
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.messages.exception_text import Cause, causes_of, marked
from headwater_spark.messages.known_exceptions import PASSING, SOURCE_CHANGED, TARGET_CHANGED, shows
from headwater_spark.quarantine.unreadable_files import UnreadableFile, damaged_file, find_unreadable
from headwater_spark.sources.cloud_files.rescue import LATE_FILE, UNKNOWN_FIELDS, wider_columns

# Those of Spark's own pipelines (spark.sql.pipelines.execution.watchdog.minRetryTime and maxTime).
FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 3600.0


def remedies_for(run: FlowRun) -> tuple[Remedy, ...]:
    """The remedies of a flow, the most specific one first."""
    shared = run.context.continuous
    last: Remedy = partial(try_later, run) if shared is None else RestartLater.of(run, shared)
    named: Remedy = partial(take_special_names, run)
    return (
        (partial(leave_files_out, run), ReloadColumns(run), named, last) if run.is_stream else (named, last)
    )


def leave_files_out(run: FlowRun, failure: Exception, start: Start) -> Start | None:
    """A batch failed on files that can't be read, and the table has a quarantine for them: continue without them.

    Applied as often as new ones turn up. They are remembered for this start only: a batch is committed to both tables, or
    its files are checked again.
    """
    files = _unreadable(run, failure, start.left_out)
    if not files:
        return None
    names = ", ".join(file.path.rpartition("/")[2] for file in files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    reason = f"{run.name} starts again without files that can't be read, which go to the quarantine: {names}{more}."
    return replace(start, seconds=0.0, reason=reason, left_out=(*start.left_out, *files))


def _unreadable(run: FlowRun, failure: Exception, known: Sequence[UnreadableFile]) -> list[UnreadableFile]:
    messages = cause_messages(failure)
    if not quarantines(run.dataset.expectations) or damaged_file(messages) is None:
        return []
    state = None if shows(causes_of(messages), PASSING) else run.checkpoint.read_state()
    if state is None:
        return []
    with run.settings(state):
        frame = run.context.pipeline.evaluation.evaluate(run.flow)
        return find_unreadable(frame, run.checkpoint.epoch_folder(state.epoch), cause_messages, known)


def reload_columns(run: FlowRun, failure: Exception, start: Start) -> Start | None:
    """Columns of a source or of the table have changed since the query was built: evolve the schema, once per attempt.

    Raises:
        UnknownFields: there are fields that the schema may not add.
        SourceSchemaChanged: the next rows have other columns than the source has now.
        SchemaChanged: new fields turned up a second time; the schema has them now.
    """
    causes = causes_of_error(failure)
    reasons = _reload_reasons(run, causes, failure)
    if not reasons:
        return None
    if not start.reloaded:
        return Start(start.attempt, reason=f"{run.name} starts again: {'; '.join(reasons)}", reloaded=True)
    if shows(causes, SOURCE_CHANGED):
        raise SourceSchemaChanged(
            f"The columns of a source of {run.name!r} differ from those of rows that it has not read yet.",
            where=run.flow.location,
            remedy=f"The table was overwritten with another schema. Refill this one: --full-refresh {run.flow.target}; or read "
            'from the new rows on, with .option("startingVersion", N) and --reset-checkpoint.',
        ) from failure
    raise SchemaChanged(
        f"Flow '{run.name}' met new fields twice in one update: {'; '.join(reasons)}",
        where=run.flow.location,
        remedy="Run the update again; it continues with the new schema. With cloudFiles.schemaEvolutionMode = rescue "
        "new fields go to the rescued data column and no stream stops for them.",
    ) from failure


@dataclass
class ReloadColumns:
    """``reload_columns``, once again after each batch: a query may run for days."""

    run: FlowRun
    batches: int = -1

    def __call__(self, failure: Exception, start: Start) -> Start | None:
        """The next start; raises what ``reload_columns`` raises."""
        written = self.run.outcome.batches > self.batches
        following = reload_columns(self.run, failure, replace(start, reloaded=False) if written else start)
        if following is not None:
            self.batches = self.run.outcome.batches
        return following


def _reload_reasons(run: FlowRun, causes: Sequence[Cause], failure: Exception) -> list[str]:
    """What changed so that another start can succeed; empty where the failure is of another kind."""
    cloud = run.context.pipeline.evaluation.cloud
    if shows(causes, TARGET_CHANGED):
        return ["another flow changed the columns of the table at the same moment"]
    if shows(causes, SOURCE_CHANGED):
        return ["the columns of a source changed while it ran"]
    if not cloud.reads_of(run.name):
        return []
    if marked(causes, LATE_FILE) is not None:
        # A file arrived between the listing of the folder and the start of the stream.
        cloud.careful.add(run.name)
        return ["files arrived while it was about to start"]
    fields = (marked(causes, UNKNOWN_FIELDS) or "").partition("\n")[0]
    if not fields:
        return []
    changes = cloud.evolve(run.name, run.checkpoint, wider_columns(fields.partition(" in file")[0]))
    if changes:
        return changes
    raise UnknownFields(
        f"Flow '{run.name}' met fields that its schema does not have: {fields.partition(' SQLSTATE')[0]}",
        where=run.flow.location,
        remedy="Add them to .schema(...) or cloudFiles.schemaHints, or remove the file, or let the schema take them "
        "(cloudFiles.schemaEvolutionMode = addNewColumns) or rescue them (rescue). Nothing of the batch was written.",
    ) from failure


@dataclass
class RestartLater:
    """Whatever the failure of a flow of a continuous update is: start again, after waits that grow.

    Decision 0173.
    """

    run: FlowRun
    shared: ContinuousRun
    backoff: Backoff
    batches: int = 0

    @classmethod
    def of(cls, run: FlowRun, shared: ContinuousRun) -> RestartLater:
        """With the waits that the pipeline's settings name."""
        levels = (run.flow.spark_conf, run.dataset.table_properties, *_of_the_pipeline(run.context))
        first = retry_wait(FIRST_WAIT, *levels, default=backoff.FIRST_SECONDS)
        longest = retry_wait(LONGEST_WAIT, *levels, default=max(first, backoff.LONGEST_SECONDS))
        return cls(
            run, shared, Backoff(first, longest, flow_retries(*levels, default=backoff.MOST_TERMINAL - 1) + 1)
        )

    def __call__(self, failure: Exception, start: Start) -> Start | None:  # noqa: ARG002 - a remedy's arguments
        """The next start; None where it stays failed, or this process may not write any more."""
        run, context = self.run, self.run.context
        error = flow_error(run.flow, failure, context.pipeline.evaluation.labels)
        ran_well = run.outcome.batches > self.batches or self.shared.runs(run.name)
        self.backoff = self.backoff.after(transient=error.transient, ran_well=ran_well)
        if self.backoff.gives_up or isinstance(error, LeaseLost):
            return None
        attempt, pause = self.backoff.failures + 1, self.backoff.seconds
        run.outcome.error = error
        run.record(FlowStatus.FAILED, error.what, will_retry=True, attempt=attempt - 1)
        run.outcome.error = None
        run.record(
            FlowStatus.RESTARTING,
            f"{run.name} starts again in {pause:.0f} s, attempt {attempt}.",
            attempt=attempt,
        )
        context.say(
            f"RESTARTING {run.name} in {pause:.0f} s, attempt {attempt}: {error.what.partition(chr(10))[0]}",
            flow=run.name,
        )
        self.batches = run.outcome.batches
        self.shared.restarts(run.name, attempt)
        return Start(attempt, pause)


def _of_the_pipeline(context: UpdateContext) -> tuple[Mapping[str, str], ...]:
    project = context.pipeline.project
    return project.configuration, project.spec.spark


def try_later(run: FlowRun, failure: Exception, start: Start) -> Start | None:
    """The failure may be transient: retry, with doubled waits, within ``pipelines.maxFlowRetryAttempts``.

    A wait does not extend beyond the end of a long update.
    """
    context = run.context
    levels = (run.flow.spark_conf, run.dataset.table_properties, *_of_the_pipeline(context))
    retries = flow_retries(*levels, default=context.flow_retries)
    error = flow_error(run.flow, failure, context.pipeline.evaluation.labels)
    if not error.transient or start.attempt > retries or context.time_is_up:
        return None
    remaining = float("inf") if context.ends is None else max(0.0, context.ends - time.monotonic())
    first = retry_wait(FIRST_WAIT, *levels, default=FIRST_WAIT_SECONDS)
    longest = retry_wait(LONGEST_WAIT, *levels, default=max(first, LONGEST_WAIT_SECONDS))
    seconds = min(first * 2 ** min(start.attempt - 1, 30), longest, remaining)
    message = f"{run.name} is tried again in {seconds:.0f} s ({start.attempt} of {retries} times)"
    context.say(f"RETRY      {message}: {error.what.partition(chr(10))[0]}", flow=run.name)
    run.emit(
        "operation_progress",
        f"{message}: {error.what}",
        level="WARN",
        details=operation_progress(
            "FLOW_RETRY", "STARTED", None, attempt=start.attempt, retries=retries, seconds=seconds
        ),
        error=error,
    )
    return Start(start.attempt + 1, seconds)
