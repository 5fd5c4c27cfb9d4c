from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headwater.definitions.source_location import SourceLocation


class ViolationAction(StrEnum):
    """What happens to a row (or its batch) that breaks a rule."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class UniqueWithin(StrEnum):
    """Where a key may be only once: among the rows of one batch, or in the table as a whole."""

    BATCH = "batch"
    TABLE = "table"


@dataclass(frozen=True)
class UniqueKey:
    """What may be there once only: the values of ``columns`` together."""

    columns: tuple[str, ...]
    within: UniqueWithin = UniqueWithin.BATCH


@dataclass(frozen=True)
class Expectation:
    """A named rule: a SQL boolean on each row, or a key that may be there once (``unique``; the constraint describes it).

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
