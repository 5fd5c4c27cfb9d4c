"""What can be wrong with an event log, or with a query over it."""

from __future__ import annotations

from headwater.errors import RefusedForSafety, UpdateFailed, UsageError


class EventLogUnreadable(UsageError):
    """The event log is damaged, or was written by a newer version."""

    condition = "EVENT_LOG_UNREADABLE"


class EventRecordsLost(RefusedForSafety):
    """The newest commit of the event log is gone, or its writer was killed before it: a finding, which keeps nobody from starting."""

    condition = "EVENT_RECORDS_LOST"


class NotAQuery(UsageError):
    """A statement that changes something, given to a verb that only reads."""

    condition = "NOT_A_QUERY"


class EventLogNotWritten(UpdateFailed):
    """Records of the event log could not be written."""

    condition = "EVENT_LOG_NOT_WRITTEN"
    transient = True
