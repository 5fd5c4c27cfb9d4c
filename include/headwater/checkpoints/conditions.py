"""What can be wrong between a checkpoint, its table and its sources: one class per condition."""

from __future__ import annotations

from headwater.errors import CheckpointMismatch, CheckpointUnreadable, RefusedForSafety, SourceMismatch


class TableGone(CheckpointMismatch):
    """The checkpoint says that rows were written, and the table is not there."""

    condition = "TABLE_GONE"


class TableReplaced(CheckpointMismatch):
    """The table is another one than the checkpoint wrote to."""

    condition = "TABLE_REPLACED"


class TableFilesGone(CheckpointMismatch):
    """Data files that the table's log has are not there, or are cut."""

    condition = "TABLE_FILES_GONE"


class QuarantineGone(CheckpointMismatch):
    """Rows that rules kept out were in a quarantine, and that is not there."""

    condition = "QUARANTINE_GONE"


class ChangeMemoryLost(CheckpointMismatch):
    """What AUTO CDC remembers beside its table is gone, or an older copy of it was put back."""

    condition = "CHANGE_MEMORY_LOST"


class TableRolledBack(CheckpointMismatch):
    """The table's log ends before the version that the flow last wrote: an older copy was put in its place."""

    condition = "TABLE_ROLLED_BACK"


class TableLogHole(CheckpointMismatch):
    """A commit is missing in the middle of the table's log: neither readers nor writers can open it."""

    condition = "TABLE_LOG_HOLE"


class TableLogDamaged(CheckpointMismatch):
    """The newest commit in the table's log is empty or cut short: what it added may be missing without a word."""

    condition = "TABLE_LOG_DAMAGED"


class FlowKindChanged(CheckpointMismatch):
    """The table's rows are those of another kind of flow than the one that is to write to it."""

    condition = "FLOW_KIND_CHANGED"


class ImportRefused(RefusedForSafety):
    """A checkpoint that a flow is to go on from, and its target, do not belong together for certain."""

    condition = "IMPORT_REFUSED"


class TransactionsExpire(RefusedForSafety):
    """The table's properties make Delta forget which batches it has: a repeated batch would be written twice."""

    condition = "TRANSACTIONS_EXPIRE"


class CheckpointLost(CheckpointMismatch):
    """The table has rows of the flow, and the flow's checkpoint is gone."""

    condition = "CHECKPOINT_LOST"


class CheckpointRewound(CheckpointMismatch):
    """The table has batches that the checkpoint does not know: new rows under their numbers would be left out."""

    condition = "CHECKPOINT_REWOUND"


class QueryIdChanged(CheckpointMismatch):
    """The checkpoint's query id is not the one that the flow has written under."""

    condition = "QUERY_ID_CHANGED"


class PlanChanged(CheckpointMismatch):
    """The query's stateful operators or their keys are not those that its state was written with."""

    condition = "PLAN_CHANGED"


class CheckFailed(RefusedForSafety):
    """A check before a start could not be carried out, so what it looks for is not known."""

    condition = "CHECK_FAILED"
    transient = True


class StorageNotReadable(RefusedForSafety):
    """A file in storage exists and can't be read now: a permission is missing, or the disk fails. It need not be damaged."""

    condition = "STORAGE_NOT_READABLE"
    transient = True


class FlowStateDamaged(CheckpointUnreadable):
    """``flow.json``, which says which epoch is live, can't be read; or another file in which storage remembers something."""

    condition = "FLOW_STATE_DAMAGED"


class MetadataLost(CheckpointUnreadable):
    """The checkpoint's file with the query id is gone or damaged, and the id is not known from elsewhere."""

    condition = "METADATA_LOST"


class OffsetsLost(CheckpointUnreadable):
    """Entries of the offset log that the next start needs are not there."""

    condition = "OFFSETS_LOST"


class OffsetsDamaged(CheckpointUnreadable):
    """An entry of the offset log is empty, cut off or altered."""

    condition = "OFFSETS_DAMAGED"


class OffsetsTooNew(CheckpointUnreadable):
    """The offset log was written by a newer Spark than this one."""

    condition = "OFFSETS_TOO_NEW"


class CommitsDamaged(CheckpointUnreadable):
    """The mark of the last finished batch is empty, cut off or altered."""

    condition = "COMMITS_DAMAGED"


class StateLost(CheckpointUnreadable):
    """Files of the state that the next batch builds on are not there."""

    condition = "STATE_LOST"


class StateDamaged(CheckpointUnreadable):
    """A file of the state does not agree with its checksum."""

    condition = "STATE_DAMAGED"


class FileLogLost(CheckpointUnreadable):
    """The list of files that a flow has read is gone: all of them would be read again."""

    condition = "FILE_LOG_LOST"


class SourceGone(SourceMismatch):
    """A table that a stream reads is not there (any more)."""

    condition = "SOURCE_GONE"


class SourceReplaced(SourceMismatch):
    """A table or topic of this name is there, and it is another one than the stream has read."""

    condition = "SOURCE_REPLACED"


class SourcesChanged(SourceMismatch):
    """A stream reads more, fewer or other sources, or the same in another order: positions are kept by number."""

    condition = "SOURCES_CHANGED"


class SourceLogCut(SourceMismatch):
    """Commits of a table that a stream has not read yet have left the table's log."""

    condition = "SOURCE_LOG_CUT"


class SourceLogHole(SourceMismatch):
    """A commit is missing in the middle of a source table's log."""

    condition = "SOURCE_LOG_HOLE"


class SourceLogDamaged(SourceMismatch):
    """A commit of a source table is empty or cut short: a stream would pass over its rows without a word."""

    condition = "SOURCE_LOG_DAMAGED"


class SourceFilesGone(SourceMismatch):
    """Files with rows that a stream has not read yet are gone: vacuumed, or deleted."""

    condition = "SOURCE_FILES_GONE"


class SourceMoved(SourceMismatch):
    """A folder of files was moved, or is named by another path: files that were read count as new ones."""

    condition = "SOURCE_MOVED"


class SourceFileNames(RefusedForSafety):
    """A file's name is a pattern to Spark, which would read the other files of its batch twice."""

    condition = "SOURCE_FILE_NAMES"


class SourceRowsChanged(SourceMismatch):
    """Rows of a table that a stream reads were changed or deleted, and the stream only takes new ones."""

    condition = "SOURCE_ROWS_CHANGED"


class ChangeFeedMissing(SourceMismatch):
    """Commits whose changes a stream is to read were written while the table's change feed was off."""

    condition = "CHANGE_FEED_MISSING"


class SourceAgedOut(SourceMismatch):
    """Messages that a stream has not read yet have left the topic."""

    condition = "SOURCE_AGED_OUT"


class TableMoved(CheckpointMismatch):
    """The sources declare a table by a name that it had before it was renamed, or moved to another pipeline."""

    condition = "TABLE_MOVED"


class TableOwned(RefusedForSafety):
    """Another pipeline fills the table."""

    condition = "TABLE_OWNED"


class TableNested(RefusedForSafety):
    """A table lies inside the folder of another one, or would."""

    condition = "TABLE_NESTED"


class MoveUnfinished(RefusedForSafety):
    """A rename or a move of a table was begun, and its process died before the end."""

    condition = "MOVE_UNFINISHED"


class PipelineRelocated(RefusedForSafety):
    """The pipeline has other roots now, or is half-way to these."""

    condition = "PIPELINE_RELOCATED"


class NameTaken(RefusedForSafety):
    """The new name of a table is taken, or the pipeline that it moves to has something of that name."""

    condition = "NAME_TAKEN"
