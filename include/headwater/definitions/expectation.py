from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headwater.definitions.source_location import SourceLocation


class ViolationAction(StrEnum):
    """What happens to a row (or its batch) that breaks a rule."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True)
class Expectation:
    """A named rule on each row: a SQL boolean. A row breaks it when it is false; NULL counts as passed."""

    name: str
    constraint: str
    action: ViolationAction
    location: SourceLocation | None = None
