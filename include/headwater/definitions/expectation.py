from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headwater.definitions.source_location import SourceLocation


class ViolationAction(StrEnum):
    """What happens to a row (or its batch) that breaks an expectation."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class UniqueWithin(StrEnum):
    """Where a key must be unique: among the rows of one batch, or in the whole table."""

    BATCH = "batch"
    TABLE = "table"


@dataclass(frozen=True)
class UniqueKey:
    """A unique key: the values of ``columns`` together."""

    columns: tuple[str, ...]
    within: UniqueWithin = UniqueWithin.BATCH


@dataclass(frozen=True)
class Expectation:
    """A named expectation: a SQL boolean on each row, or a unique key (``unique``; the constraint describes it).

    A row breaks a condition when it is false; NULL counts as passed. A row breaks a unique key when its key was there
    before it; a key with a NULL in it counts as passed.
    """

    name: str
    constraint: str
    action: ViolationAction
    location: SourceLocation | None = None
    unique: UniqueKey | None = None


def needs_judgement(rules: Iterable[Expectation]) -> bool:
    """Whether batches have to be judged before they are written: a row goes to one of two tables, or is compared with others."""
    return any(rule.unique is not None or rule.action is ViolationAction.QUARANTINE for rule in rules)


def quarantines(rules: Iterable[Expectation]) -> bool:
    """Whether rows may go to the quarantine table."""
    return any(rule.action is ViolationAction.QUARANTINE for rule in rules)
