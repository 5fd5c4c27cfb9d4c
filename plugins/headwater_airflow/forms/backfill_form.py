"""The form of a backfill, and the request parsed from it: anybody may post anything, so it is checked again.

Decision 0113.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.sdk import Param

from headwater.backfills.backfill_range import BackfillMode, BackfillRange, RangeKind, read_range
from headwater.backfills.conditions import InvalidRange
from headwater.definitions.names import NAME_PATTERN, check_name
from headwater.errors import UsageError
from headwater_airflow.forms.selection import QUALIFIED

# The mode that fits the table and the range.
_AUTO = "auto"
_LONGEST = 100_000
_NAME = NAME_PATTERN.pattern
_SWITCHES = ("dry_run", "again", "allow_fewer_rows", "then_stream")


@dataclass(frozen=True)
class BackfillRequest:
    """What a run is to fill. ``chosen``: None where all history is loaded and the stream started after it."""

    tables: tuple[str, ...]
    chosen: BackfillRange | None
    mode: str | None = None
    keys: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """The request as arguments of ``headwater backfill``; values are joined to their option, so none can pass for one."""
        argv = [f"--tables={','.join(self.tables)}"]
        if self.chosen is not None:
            argv += _range_arguments(self.chosen)
        argv += [f"--mode={self.mode}"] if self.mode else []
        argv += [f"--keys={','.join(self.keys)}"] if self.keys else []
        return argv + [f"--{name.replace('_', '-')}" for name in self.switches]


def _range_arguments(chosen: BackfillRange) -> list[str]:
    values = chosen.as_dict()
    if "where" in values:
        return [f"--where={values['where']}"]
    argv = [f"--range={values['kind']}", f"--from={_typed(values['from'])}", f"--to={_typed(values['to'])}"]
    return [*argv, f"--column={values['column']}"] if "column" in values else argv


def backfill_params(datasets: Sequence[str], tables: Sequence[str], column: str | None) -> dict[str, Param]:
    """The fields of the form; ``datasets`` are offered, ``tables`` and ``column`` filled in."""
    names: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": QUALIFIED}}
    chosen = list(tables) or list(datasets[:1])
    if chosen:
        # Before the first manifest there is none to fill in; Airflow refuses a schedule for a form that nobody has filled in.
        names["minItems"] = 1
    if datasets:
        names["examples"] = list(datasets)
    return {
        "tables": Param(
            chosen,
            title="Tables",
            description="They are filled in this order, each in one commit.",
            **names,
        ),
        **_range_fields(column),
        "mode": Param(
            _AUTO,
            title="Mode",
            description="auto: replace-where for event times and conditions, append for the others, merge for targets of AUTO CDC.",
            type="string",
            enum=[_AUTO, *(str(mode) for mode in BackfillMode)],
        ),
        "keys": Param(
            [],
            title="Keys",
            description="With the mode merge: the columns that tell rows apart.",
            type="array",
            items={"type": "string", "pattern": rf"^{_NAME}$"},
        ),
        **_switch_fields(),
    }


def _range_fields(column: str | None) -> dict[str, Param]:
    end: dict[str, Any] = {"type": ["null", "string"], "maxLength": _LONGEST}
    return {
        "range": Param(
            str(RangeKind.EVENT_TIME),
            title="Range by",
            description="event-time: rows of the table, by a column; where: by a condition. The others are about what the source gave: "
            "versions of a Delta table, offsets of Kafka, files by when they were changed.",
            type="string",
            enum=[str(kind) for kind in RangeKind],
        ),
        "column": Param(
            column,
            title="Column with the event time",
            description="A timestamp or a date of the table. For ranges by event time only.",
            type=["null", "string"],
            pattern=rf"^{_NAME}$",
        ),
        "where": Param(
            None,
            title="Condition",
            description="For ranges by where only: which rows of the table, in SQL, as region = 'EU' AND day >= '2026-01-01'.",
            **end,
        ),
        "from": Param(
            None,
            title="From",
            description='2026-01-01 or 2026-01-01T08:00 (UTC); a version; offsets as {"topic": {"0": 100}}. Empty in '
            "a backfill of Airflow's: the beginning of the data interval.",
            **end,
        ),
        "to": Param(
            None,
            title="To",
            description="Times and offsets before this; versions with this. Empty in a backfill of Airflow's: the end of the "
            "data interval.",
            **end,
        ),
    }


def _switch_fields() -> dict[str, Param]:
    return {
        "dry_run": Param(
            True,
            title="Dry run",
            description="Count what would be read, written and replaced, and write nothing. Untick it to fill the range.",
            type="boolean",
        ),
        "again": Param(
            False,
            title="Again",
            description="Do it though this range was done before by the same definition.",
            type="boolean",
        ),
        "allow_fewer_rows": Param(
            False,
            title="Allow fewer rows",
            description="Replace also where fewer rows come than leave.",
            type="boolean",
        ),
        "then_stream": Param(
            False,
            title="All history, then stream",
            description="For tables that never ran: load everything as one batch, then start the stream where that ended. "
            "Leave range, column, from and to as they are.",
            type="boolean",
        ),
    }


def read_backfill(params: Mapping[str, Any], interval: tuple[datetime, datetime] | None) -> BackfillRequest:
    """The request in a run's parameters; ``interval``: the range where the form names none.

    Raises:
        InvalidName, InvalidRange, UsageError: a value is not of its kind, or two do not go together.
    """
    tables, keys = _names(params, "tables"), _names(params, "keys")
    if not tables:
        raise UsageError("No table is chosen.", where="tables", remedy="Choose at least one.")
    switches = tuple(name for name in _SWITCHES if _switch(params, name))
    start, end = _text(params, "from"), _text(params, "to")
    if "then_stream" in switches:
        if start or end:
            raise UsageError(
                "All history is to be loaded, and a range is given.",
                where="then_stream",
                remedy="Leave one of them out.",
            )
        return BackfillRequest(tables, None, switches=switches)
    kind = _one_of(params, "range", [str(kind) for kind in RangeKind])
    mode = _one_of(params, "mode", [_AUTO, *(str(mode) for mode in BackfillMode)])
    column = _text(params, "column") if kind == RangeKind.EVENT_TIME else None
    if column:
        check_name(column, "column", "column")
    condition = _text(params, "where")
    if kind == RangeKind.WHERE or condition:
        return BackfillRequest(
            tables,
            read_range(kind, start, end, None, condition),
            None if mode == _AUTO else mode,
            keys,
            switches,
        )
    if not start and not end:
        if interval is None or kind != RangeKind.EVENT_TIME:
            raise InvalidRange(
                "The range has no ends.",
                where="from, to",
                remedy="Fill in both. Only a backfill of Airflow's own, by event time, takes them from its data interval.",
            )
        start, end = (moment.isoformat() for moment in interval)
    chosen = read_range(kind, start, end, column or None)
    return BackfillRequest(tables, chosen, None if mode == _AUTO else mode, keys, switches)


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(params: Mapping[str, Any], key: str) -> str | None:
    value = params.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise UsageError(f"{str(value)[:80]!r} is not text.", where=key)
    return value


def _switch(params: Mapping[str, Any], key: str) -> bool:
    # A missing value means a dry run: an incomplete form writes nothing.
    value = params.get(key, key == "dry_run")
    if not isinstance(value, bool):
        raise UsageError(f"{value!r} is neither true nor false.", where=key)
    return value


def _one_of(params: Mapping[str, Any], key: str, allowed: Sequence[str]) -> str:
    value = params.get(key, allowed[0])
    if value not in allowed:
        raise UsageError(f"{value!r} is not one of {', '.join(allowed)}.", where=key)
    return str(value)


def _names(params: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = params.get(key) or []
    if not isinstance(value, list | tuple):
        raise UsageError(f"{value!r} is not a list of names.", where=key, remedy="Give a JSON list.")
    for name in value:
        for part in str(name).split(".") if isinstance(name, str) and key == "tables" else [name]:
            check_name(part, "dataset" if key == "tables" else "column", key)
    return tuple(dict.fromkeys(value))
