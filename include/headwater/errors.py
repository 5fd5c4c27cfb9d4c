"""Every error that Headwater raises on purpose.

HeadwaterError                       what, where, what to do; a condition name; an exit code
├── UsageError            (exit 2)   the command or the machine is not as it must be
│   └── PipelineNotFound, ManifestNotFound, UnknownQuarantinedRow
├── InvalidPipeline       (exit 2)   the definition can't be run; nothing was written
│   ├── InvalidSpec, SourceFileFailed, InvalidName
│   ├── DuplicateDataset, UnknownDataset, DatasetCycle, FlowWithoutTarget
│   ├── NotADataFrame, ActionInDefinition, InvalidExpectation
│   ├── QueryFailed, DuplicateColumn
│   ├── StreamingReadOfMaterializedView
│   ├── UnsupportedArgument, UnsupportedSource, UnsupportedStreamOperation
│   ├── InvalidSourceOption, SchemaNotInferred, MissingValue
│   ├── DatasetReadAtImport
│   └── SourceNotGiven               a test reads what it did not give
├── RefusedForSafety      (exit 3)   it could be done, and data might be lost or doubled
│   ├── UpdateInProgress, LeaseLost, ResetNotAllowed, ChangeFeedBroken, SourcePositionLost
│   ├── CheckpointMismatch           position and table do not belong together (any more)
│   ├── CheckpointUnreadable         a file of a checkpoint is missing or damaged
│   └── SourceMismatch               a source is not what the checkpoint has read so far
└── UpdateFailed          (exit 1)   an update ran and did not end well
    ├── FlowFailed                   terminal: a retry gives the same
    │   ├── ExpectationViolated
    │   └── SourceSchemaChanged, SourceNotFound, SourceAccessDenied
    ├── RowsNotConserved             rows of a batch are not accounted for
    ├── FlowInterrupted              transient: a retry may help
    ├── LeaseUnreachable             transient: the store of the lease could not be reached
    ├── MaintenanceFailed            steps of maintenance failed, the others were done
    └── SourceUnreachable            transient: a source could not be queried

Below these, what belongs to one subject is declared beside it: ``headwater.checkpoints.conditions`` (each kind of damage),
``headwater.definitions.change_conditions`` (AUTO CDC), ``headwater.backfills.conditions``, ``headwater.event_log.conditions``,
``headwater.delta_log.conditions``, ``headwater.graph.conditions``, ``headwater.metastore.conditions``, ``headwater.runtime.conditions``, ``headwater.sql_sources.conditions``.
"""

from __future__ import annotations

from typing import ClassVar

# One section a condition.
HELP_PAGE = "docs/what-to-do-when.md"


class HeadwaterError(Exception):
    """The root: says what happened, where (file and line, or a path), and what to do about it."""

    condition: ClassVar[str] = "HEADWATER"
    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(self, what: str, *, where: object = None, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = str(where) if where is not None else ""
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [f"[{self.condition}] {self.what}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.remedy:
            lines.append(f"  what to do: {self.remedy}")
        lines.append(f"  more: {self.help}")
        return "\n".join(lines)

    @property
    def help(self) -> str:
        """Where the pages say more about the condition."""
        return f"{HELP_PAGE}#{self.condition.lower()}"

    def as_dict(self) -> dict[str, object]:
        """The error as plain values, for ``--json`` and the event log."""
        return {
            "condition": self.condition,
            "message": self.what,
            "where": self.where,
            "remedy": self.remedy,
            "transient": self.transient,
            "help": self.help,
        }


class UsageError(HeadwaterError):
    """The command line, or the machine it runs on, is not as it must be."""

    condition = "USAGE"
    exit_code = 2


class PipelineNotFound(UsageError):
    """The folder holds no pipeline."""

    condition = "PIPELINE_NOT_FOUND"


class ManifestNotFound(UsageError):
    """The pipeline's graph has not been resolved yet, and the verb does not resolve it."""

    condition = "NO_MANIFEST"


class UnknownQuarantinedRow(UsageError):
    """No quarantined row is what the command asks for."""

    condition = "NO_SUCH_QUARANTINED_ROW"


class InvalidPipeline(HeadwaterError):
    """The pipeline can't be run as it is defined; nothing was written."""

    condition = "INVALID_PIPELINE"
    exit_code = 2


class InvalidSpec(InvalidPipeline):
    """A key of ``pipeline.yml`` is unknown, or its value is not of the right type."""

    condition = "INVALID_SPEC"


class InvalidName(InvalidPipeline):
    """A name has characters that are not allowed in names of datasets, flows and pipelines."""

    condition = "INVALID_NAME"


class SourceFileFailed(InvalidPipeline):
    """A source file of the pipeline raised an error while it was run."""

    condition = "SOURCE_FILE_FAILED"


class DuplicateDataset(InvalidPipeline):
    """Two definitions claim one name."""

    condition = "DUPLICATE_DATASET"


class UnknownDataset(InvalidPipeline):
    """A function reads a name that is neither a dataset of the pipeline nor an existing table."""

    condition = "UNKNOWN_DATASET"


class DatasetCycle(InvalidPipeline):
    """Datasets read each other in a circle."""

    condition = "DATASET_CYCLE"


class FlowWithoutTarget(InvalidPipeline):
    """A flow writes to a name that no streaming table or sink has, or a table has no flow."""

    condition = "FLOW_WITHOUT_TARGET"


class NotADataFrame(InvalidPipeline):
    """A dataset function returned something other than a DataFrame of the right kind."""

    condition = "NOT_A_DATAFRAME"


class ActionInDefinition(InvalidPipeline):
    """A dataset function ran a Spark action (collect, count, start, ...) instead of describing a query."""

    condition = "ACTION_IN_DEFINITION"


class InvalidExpectation(InvalidPipeline):
    """A constraint does not parse, names unknown columns, or depends on more than the row."""

    condition = "INVALID_EXPECTATION"


class QueryFailed(InvalidPipeline):
    """Spark could not analyse the query that a dataset function describes."""

    condition = "QUERY_FAILED"


class DuplicateColumn(QueryFailed):
    """A query returns two columns whose names differ in letter case at most."""

    condition = "DUPLICATE_COLUMN"


class StreamingReadOfMaterializedView(InvalidPipeline):
    """A stream can't follow a table whose rows are replaced at each refresh."""

    condition = "STREAMING_READ_OF_MATERIALIZED_VIEW"


class UnsupportedArgument(InvalidPipeline):
    """An argument that open Spark and Delta can't honour."""

    condition = "UNSUPPORTED_ARGUMENT"


class UnsupportedSource(InvalidPipeline):
    """A source format that this version can't read."""

    condition = "UNSUPPORTED_SOURCE"


class UnsupportedStreamOperation(InvalidPipeline):
    """An operation that Spark can run on a batch and not on a stream."""

    condition = "UNSUPPORTED_STREAM_OPERATION"


class DatasetReadAtImport(InvalidPipeline):
    """A source reads a dataset of the pipeline outside a function: before it is known what the dataset is."""

    condition = "DATASET_READ_AT_IMPORT"


class SourceNotGiven(InvalidPipeline):
    """In a test, a function reads a source for which no rows are given, or rows are given that nothing reads."""

    condition = "SOURCE_NOT_GIVEN"


class MissingValue(InvalidPipeline):
    """SQL text names a ``${key}`` that has no value."""

    condition = "MISSING_VALUE"


class InvalidSourceOption(InvalidPipeline):
    """An option of a source that is unknown, or has a value that can't be honoured."""

    condition = "INVALID_SOURCE_OPTION"


class SchemaNotInferred(InvalidPipeline):
    """The columns of a source's files can't be inferred."""

    condition = "SCHEMA_NOT_INFERRED"


class RefusedForSafety(HeadwaterError):
    """Going on could lose or double data; nothing was changed."""

    condition = "REFUSED_FOR_SAFETY"
    exit_code = 3


class UpdateInProgress(RefusedForSafety):
    """Another update of the same pipeline holds the lease."""

    condition = "UPDATE_IN_PROGRESS"
    transient = True


class LeaseLost(RefusedForSafety):
    """The lease of an update was removed, taken, or could not be renewed: another one may be writing."""

    condition = "LEASE_LOST"
    transient = True


class CheckpointMismatch(RefusedForSafety):
    """A checkpoint and the table it writes to do not belong together (any more)."""

    condition = "CHECKPOINT_MISMATCH"


class CheckpointUnreadable(RefusedForSafety):
    """A file of a checkpoint is empty, cut off, or not of the form that Spark writes."""

    condition = "CHECKPOINT_UNREADABLE"


class SourceMismatch(RefusedForSafety):
    """A source is not what the checkpoint has read so far, or no longer has what it has not read yet."""

    condition = "SOURCE_MISMATCH"


class ChangeFeedBroken(RefusedForSafety):
    """A reader of a table's changes can't go on from where it was: what came next is gone, or not recorded."""

    condition = "CHANGE_FEED_BROKEN"


class ResetNotAllowed(RefusedForSafety):
    """The table's property ``pipelines.reset.allowed`` is false."""

    condition = "RESET_NOT_ALLOWED"


class SourcePositionLost(RefusedForSafety):
    """What a flow has not read yet is gone from its source, or the source is another one of the same name."""

    condition = "SOURCE_POSITION_LOST"


class UpdateFailed(HeadwaterError):
    """An update ran and did not end well."""

    condition = "UPDATE_FAILED"


class FlowFailed(UpdateFailed):
    """A flow failed for a reason that a retry will meet again."""

    condition = "FLOW_FAILED"


class ExpectationViolated(FlowFailed):
    """A row broke an expectation of kind fail; nothing of its batch was written."""

    condition = "EXPECTATION_VIOLATION"


class SourceNotFound(FlowFailed):
    """There is no source of that name."""

    condition = "SOURCE_NOT_FOUND"


class SourceAccessDenied(FlowFailed):
    """A source denies access to the flow, or there are no credentials."""

    condition = "SOURCE_ACCESS_DENIED"


class SourceSchemaChanged(FlowFailed):
    """The columns of a source are not those that the flow has read so far."""

    condition = "SOURCE_SCHEMA_CHANGED"


class UnknownFields(FlowFailed):
    """Files have fields that the schema lacks, and the flow is configured to fail then; nothing of its batch was written."""

    condition = "UNKNOWN_FIELDS"


class SchemaChanged(UpdateFailed):
    """The source's schema was evolved more than once in one update; the next start goes on with the new one."""

    condition = "SCHEMA_CHANGED"
    transient = True


class RowsNotConserved(UpdateFailed):
    """What a batch brought is not the sum of what was written, dropped and quarantined."""

    condition = "ROWS_NOT_CONSERVED"


class FlowInterrupted(UpdateFailed):
    """A flow failed for a reason outside the definition (an unreachable broker, a lost executor)."""

    condition = "FLOW_INTERRUPTED"
    transient = True


class LeaseUnreachable(UpdateFailed):
    """The object store of the lease does not answer."""

    condition = "LEASE_UNREACHABLE"
    transient = True


class StorageFailed(UpdateFailed):
    """Storage can't be written to: it is full, read-only, or belongs to another user."""

    condition = "STORAGE_FAILED"
    transient = True


class MaintenanceFailed(UpdateFailed):
    """Steps of maintenance failed; the others were done, and no row is touched by any of them."""

    condition = "MAINTENANCE_FAILED"


class SourceUnreachable(UpdateFailed):
    """A source (a broker, a folder) could not be queried for its position."""

    condition = "SOURCE_UNREACHABLE"
    transient = True
