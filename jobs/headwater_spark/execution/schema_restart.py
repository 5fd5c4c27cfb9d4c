"""A stream whose source's schema had to be reloaded starts once more by itself; after that it fails clearly.

Decision 0021.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.errors import SchemaChanged, SourceSchemaChanged, UnknownFields
from headwater.event_log.details import FlowStatus
from headwater_spark.execution.failures import cause_messages
from headwater_spark.execution.file_cleaning import clean_sources
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.unreadable_restart import run_readable
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.messages.exception_text import Cause, causes_of, marked
from headwater_spark.sources.cloud_files.rescue import LATE_FILE, UNKNOWN_FIELDS, wider_columns

# The columns of a Delta table changed after the query was made, or while it ran. A tracked schema evolves so, too.
_MOVED = re.compile(
    r"DELTA_SCHEMA_CHANGED|DELTA_STREAMING_METADATA_EVOLUTION|DELTA_STREAMING_SCHEMA_EVOLUTION|DELTA_STREAMING_SCHEMA_MISMATCH"
)
_INVALID_BATCH = "assertion failed: Invalid batch: "


def run_evolving(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Run a stream; where its files have new fields and may bring them in, evolve the schema and run it once more.

    Raises:
        UnknownFields: there are fields that the schema may not take.
        SchemaChanged: new fields turned up a second time; the schema has them now.
        Whatever ``run_stream`` raises.
    """
    cloud = context.pipeline.evaluation.cloud
    cloud.careful.discard(flow.name)
    try:
        run_readable(context, dataset, flow, outcome)
    except Exception as error:
        reasons = _reasons(context, dataset, flow, error)
        if not reasons or context.stop_requested.is_set():
            raise
        message = f"{flow.name} starts again: {'; '.join(reasons)}"
        context.say(message)
        context.flow_event(outcome, FlowStatus.STARTING, message)
        _once_more(context, dataset, flow, outcome)
    if outcome.status is FlowStatus.COMPLETED:
        clean_sources(context, dataset, flow)


def _once_more(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    try:
        run_readable(context, dataset, flow, outcome)
    except Exception as error:
        reasons = _reasons(context, dataset, flow, error)
        if not reasons:
            raise
        if _moved(causes_of(cause_messages(error))):
            raise SourceSchemaChanged(
                f"The columns of a source of {flow.name!r} are others than in rows that it has not read yet.",
                where=flow.location,
                remedy=f"The table was overwritten with another schema. Fill this one anew: --full-refresh {flow.target}; or read "
                'from the new rows on, with .option("startingVersion", N) and --reset-checkpoint.',
            ) from error
        raise SchemaChanged(
            f"Flow '{flow.name}' met new fields twice in one update: {'; '.join(reasons)}",
            where=flow.location,
            remedy="Run the update again; it goes on with the new schema. With cloudFiles.schemaEvolutionMode = rescue "
            "new fields go to the rescued data column and no stream stops for them.",
        ) from error


def _reasons(context: UpdateContext, dataset: Dataset, flow: Flow, error: Exception) -> list[str]:
    """What was changed so that another start can succeed; nothing where the error is of another kind."""
    cloud = context.pipeline.evaluation.cloud
    causes = causes_of(cause_messages(error))
    if any(cause.condition.startswith("DELTA_METADATA_CHANGED") for cause in causes):
        # Nothing was committed: the batch is planned, and comes again.
        return ["another flow changed the columns of the table at the same moment"]
    if _moved(causes):
        return ["the columns of a source changed while it ran"]
    if not cloud.reads_of(flow.name):
        return []
    if marked(causes, LATE_FILE) is not None:
        # A file came between the look at the folder and the start of the stream.
        cloud.careful.add(flow.name)
        return ["files arrived while it was about to start"]
    found = marked(causes, UNKNOWN_FIELDS)
    if found is None:
        return []
    found = found.partition("\n")[0]
    names = found.partition(" in file")[0]
    checkpoint = context.checkpoint(dataset.name, flow.name)
    changes = cloud.evolve(flow.name, checkpoint, wider_columns(names))
    if changes:
        return changes
    raise UnknownFields(
        f"Flow '{flow.name}' met fields that its schema does not have: {found.partition(' SQLSTATE')[0]}",
        where=flow.location,
        remedy="Add them to .schema(...) or cloudFiles.schemaHints, or remove the file, or let the schema take them "
        "(cloudFiles.schemaEvolutionMode = addNewColumns) or rescue them (rescue). Nothing of the batch was written.",
    ) from error


def _moved(causes: Sequence[Cause]) -> bool:
    return any(
        _MOVED.match(cause.condition)
        or (cause.kind == "AssertionError" and cause.message.startswith(_INVALID_BATCH))
        for cause in causes
    )
