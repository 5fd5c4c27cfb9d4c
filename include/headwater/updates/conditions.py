"""Why an update is not started: one class per condition."""

from __future__ import annotations

from headwater.errors import UsageError


class NotForContinuous(UsageError):
    """What was asked for is done once, and a continuous update does not end."""

    condition = "NOT_FOR_CONTINUOUS"
