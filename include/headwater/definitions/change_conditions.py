"""Errors of change flows (AUTO CDC)."""

from __future__ import annotations

from headwater.errors import FlowFailed, InvalidPipeline, RefusedForSafety


class InvalidChangeFlow(InvalidPipeline):
    """The arguments of AUTO CDC contradict each other, or do not fit the source's columns."""

    condition = "INVALID_CHANGE_FLOW"


class ChangeFlowChanged(RefusedForSafety):
    """Keys, sequence or tracked columns of an AUTO CDC target are not those that its rows were made with."""

    condition = "CHANGE_FLOW_CHANGED"


class ColumnTypeChanged(FlowFailed):
    """A column has a type that the target's column can't be widened to; nothing of its batch was written."""

    condition = "COLUMN_TYPE_CHANGED"


class NullSequence(FlowFailed):
    """A change event has no sequence, so it can't be ordered; nothing of its batch was written."""

    condition = "NULL_SEQUENCE"


class NullKey(FlowFailed):
    """A change event has no key, so it identifies no row; nothing of its batch was written."""

    condition = "NULL_KEY"


class DuplicateKey(FlowFailed):
    """A snapshot has a key more than once; nothing of it was written."""

    condition = "DUPLICATE_KEY"


class SnapshotOutOfOrder(FlowFailed):
    """A snapshot's version is not above the one that was applied last; nothing of it was written."""

    condition = "SNAPSHOT_OUT_OF_ORDER"
