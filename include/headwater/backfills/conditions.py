"""Why a backfill is not started: one class per condition."""

from __future__ import annotations

from headwater.errors import RefusedForSafety, UsageError


class InvalidRange(UsageError):
    """The range is empty, can't be read, or is of a kind that the table's sources and columns do not have."""

    condition = "INVALID_RANGE"


class BackfillNotPossible(RefusedForSafety):
    """The definition, or the kind of its target, gives no right answer for a part of the table alone."""

    condition = "BACKFILL_NOT_POSSIBLE"


class RangeNotReadYet(RefusedForSafety):
    """The live stream has not read all of the range: it would write the same rows a second time."""

    condition = "RANGE_NOT_READ_YET"


class RangeAlreadyWritten(RefusedForSafety):
    """Rows of the range are in the table already: appended, they would be there twice."""

    condition = "RANGE_ALREADY_WRITTEN"


class ReadersWouldBreak(RefusedForSafety):
    """A stream reads the table, and can't follow rows that are taken out of it."""

    condition = "READERS_WOULD_BREAK"


class FewerRows(RefusedForSafety):
    """The definition gives fewer rows for the range than the table has: sources may have lost some."""

    condition = "FEWER_ROWS"
