"""What part of a table, or of its source, a backfill is about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from headwater.backfills.conditions import InvalidRange


class RangeKind(StrEnum):
    """What a range is measured in: ``EVENT_TIME`` and ``WHERE`` refer to the table's rows, the others to the source."""

    EVENT_TIME = "event-time"
    WHERE = "where"
    VERSION = "version"
    OFFSET = "offset"
    FILE_TIME = "file-time"

    @property
    def of_rows(self) -> bool:
        """Whether it says which rows of the table are meant."""
        return self in (RangeKind.EVENT_TIME, RangeKind.WHERE)


class BackfillMode(StrEnum):
    """How the rows of a range reach the table."""

    APPEND = "append"
    REPLACE_WHERE = "replace-where"
    MERGE = "merge"


@dataclass(frozen=True)
class BackfillRange:
    """A range whose ends are in order. Times are half open, versions include both ends.

    ``start`` and ``end``: a UTC time, a version, or offsets by topic and partition (the end is the next one).
    ``column``: for event time, the column of the table that has it. ``condition``: instead of ends, which rows are meant.
    """

    kind: RangeKind
    start: Any
    end: Any
    column: str | None = None
    condition: str | None = None

    @property
    def key(self) -> str:
        """The range as one text, the same for however it was typed."""
        if self.condition is not None:
            return json.dumps([str(self.kind), self.condition])
        return json.dumps(
            [str(self.kind), _plain(self.start), _plain(self.end), (self.column or "").lower()],
            sort_keys=True,
        )

    def as_dict(self) -> dict[str, Any]:
        """The range as JSON values."""
        if self.condition is not None:
            return {"kind": str(self.kind), "where": self.condition}
        values = {"kind": str(self.kind), "from": _plain(self.start), "to": _plain(self.end)}
        return {**values, "column": self.column} if self.column else values

    def __str__(self) -> str:
        if self.condition is not None:
            return f"rows where {self.condition}"
        if self.kind is RangeKind.VERSION:
            return f"versions {self.start} to {self.end}"
        name = self.column if self.kind is RangeKind.EVENT_TIME else str(self.kind)
        return f"{name} from {_shown(self.start)} to before {_shown(self.end)}"


def read_range(
    kind: str, start: str | None, end: str | None, column: str | None, condition: str | None = None
) -> BackfillRange:
    """The range that somebody typed.

    Raises:
        InvalidRange: an end is missing or can't be read, the range is empty, or the column or condition is missing or in the way.
    """
    range_kind = RangeKind(kind)
    if (condition is not None) != (range_kind is RangeKind.WHERE) or (condition and (start or end or column)):
        raise InvalidRange(
            "A condition says which rows are meant, without ends and without a column."
            if condition is not None
            else "A range by a condition needs the condition.",
            remedy=_FORMS[RangeKind.WHERE],
        )
    if condition is not None:
        if not condition.strip():
            raise InvalidRange("The condition is empty.", remedy=_FORMS[RangeKind.WHERE])
        return BackfillRange(range_kind, None, None, condition=condition.strip())
    if not start or not end:
        raise InvalidRange(f"A range by {range_kind} needs both ends.", remedy=_FORMS[range_kind])
    if (column is not None) != (range_kind is RangeKind.EVENT_TIME):
        raise InvalidRange(
            "A range by event time needs the column that has it."
            if column is None
            else f"--column is for event times, and the range is one by {range_kind}.",
            remedy=_FORMS[RangeKind.EVENT_TIME],
        )
    first, last = _READERS[range_kind](start, range_kind), _READERS[range_kind](end, range_kind)
    _check_order(range_kind, first, last)
    return BackfillRange(range_kind, first, last, column)


def _check_order(kind: RangeKind, first: Any, last: Any) -> None:
    if kind is RangeKind.OFFSET:
        _check_offsets(first, last)
        return
    empty = last < first if kind is RangeKind.VERSION else last <= first
    if empty:
        raise InvalidRange(
            f"The range is empty: it begins at {_shown(first)} and ends at {_shown(last)}.",
            remedy=_FORMS[kind],
        )


def _check_offsets(first: dict[str, dict[str, int]], last: dict[str, dict[str, int]]) -> None:
    places = [{(topic, part) for topic, parts in side.items() for part in parts} for side in (first, last)]
    if places[0] != places[1]:
        raise InvalidRange("The two ends name other topics or partitions.", remedy=_FORMS[RangeKind.OFFSET])
    for topic, part in sorted(places[0]):
        if last[topic][part] < first[topic][part]:
            raise InvalidRange(
                f"The range of {topic}, partition {part}, ends at {last[topic][part]}, before it begins at {first[topic][part]}.",
                remedy=_FORMS[RangeKind.OFFSET],
            )
    if all(last[topic][part] == first[topic][part] for topic, part in places[0]):
        raise InvalidRange("The range is empty.", remedy=_FORMS[RangeKind.OFFSET])


def _time(text: str, kind: RangeKind) -> datetime:
    # No "7 days ago": the range of a second try has to be the same.
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRange(f"{text!r} is not a time in ISO form.", remedy=_FORMS[kind]) from None


def _version(text: str, kind: RangeKind) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidRange(f"{text!r} is not a version of a Delta table.", remedy=_FORMS[kind])
    return int(text)


def _offsets(text: str, kind: RangeKind) -> dict[str, dict[str, int]]:
    try:
        offsets = json.loads(text)
        return {
            str(topic): {str(int(part)): _offset(offset) for part, offset in parts.items()}
            for topic, parts in offsets.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise InvalidRange(f"{text!r} is not a map of offsets.", remedy=_FORMS[kind]) from None


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return int(value)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _shown(value: Any) -> str:
    if not isinstance(value, datetime):
        return json.dumps(value)
    return (
        value.strftime("%Y-%m-%d %H:%M:%S" if value.time().microsecond == 0 else "%Y-%m-%d %H:%M:%S.%f") + "Z"
    )


_FORMS = {
    RangeKind.EVENT_TIME: "Give --column COLUMN --from 2026-01-01 --to 2026-02-01: times from the first on, before the second.",
    RangeKind.WHERE: """Give --where "region = 'EU' AND day >= '2026-01-01'": a condition over columns of the table.""",
    RangeKind.VERSION: "Give --range version --from 3 --to 7: both versions are part of it.",
    RangeKind.OFFSET: """Give --range offset --from '{"topic": {"0": 100}}' --to '{"topic": {"0": 200}}': the end is the next offset.""",
    RangeKind.FILE_TIME: "Give --range file-time --from 2026-01-01 --to 2026-02-01: when the files were last changed.",
}
_READERS = {
    RangeKind.EVENT_TIME: _time,
    RangeKind.VERSION: _version,
    RangeKind.OFFSET: _offsets,
    RangeKind.FILE_TIME: _time,
}
