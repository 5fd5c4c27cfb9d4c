"""The form of a repair, and the request parsed from it: anybody may post anything, so it is checked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param

from headwater.definitions.names import NAME_PATTERN, is_dotted_name
from headwater.doctor.repair_plan import OWNERS, RepairOptions
from headwater.errors import UsageError
from headwater.preflight.damage import Repair

# An update starts Spark for it: the form of the pipeline's own DAG has it.
_OFFERED = [str(action) for action in Repair if action is not Repair.FULL_REFRESH]


@dataclass(frozen=True)
class RepairForm:
    """A requested repair."""

    flow: str
    action: Repair
    options: RepairOptions


def repair_params(flows: Sequence[str]) -> dict[str, Param]:
    """The fields of the form; ``flows`` are offered for choosing."""
    named = {
        "type": "string",
        "pattern": rf"^{NAME_PATTERN.pattern}(\.{NAME_PATTERN.pattern})*$",
        "examples": list(flows),
    }
    whole_number = {"type": ["null", "integer"], "minimum": 0}
    return {
        "flow": Param(flows[0] if flows else "", title="Flow", **named),
        "action": Param(
            str(Repair.MEND),
            enum=_OFFERED,
            title="Action",
            description="The page of checkpoints says which helps, and what each would lose or double.",
        ),
        "dry_run": Param(
            True, type="boolean", title="Dry run", description="Only show the plan, in the log of `plan`."
        ),
        "batch": Param(None, title="rewind: the last batch to keep", **whole_number),
        "snapshot": Param(None, type=["null", "string"], title="restore: the copy (else the newest)"),
        "from_start": Param(
            False, type="boolean", title="new-epoch: read everything again; the table keeps its rows"
        ),
        "from_version": Param(
            None, title="new-epoch: the first version of the Delta source to read", **whole_number
        ),
        "from_offsets": Param(None, type=["null", "array"], title="new-epoch: one offset a source"),
        "from_time": Param(
            None, type=["null", "string"], format="date-time", title="new-epoch: what is older counts as read"
        ),
    }


def read_repair(params: Mapping[str, Any]) -> RepairForm:
    """The repair in a run's parameters.

    Raises:
        UsageError: where a value is of the wrong kind, or does not belong to the action.

    """
    flow, action = params.get("flow"), params.get("action")
    if not isinstance(flow, str) or not is_dotted_name(flow):
        raise UsageError(f"{flow!r} names no flow.", where="flow")
    if action not in _OFFERED:
        raise UsageError(f"{action!r} is not one of {', '.join(_OFFERED)}.", where="action")
    offsets = _of_type(params, "from_offsets", list, tuple)
    options = RepairOptions(
        _of_type(params, "batch", int),
        _of_type(params, "snapshot", str),
        bool(_of_type(params, "from_start", bool)),
        _of_type(params, "from_version", int),
        None if offsets is None else tuple(offsets),
        _millis(_of_type(params, "from_time", str)),
    )
    foreign = options.foreign_to(Repair(action))
    if foreign is not None:
        raise UsageError(
            f"{foreign} belongs to the action {OWNERS[foreign]}, not to {action}.", where=foreign
        )
    return RepairForm(flow, Repair(action), options)


def _of_type(params: Mapping[str, Any], key: str, *kinds: type) -> Any:
    value = params.get(key)
    if value is not None and type(value) not in kinds:
        raise UsageError(f"{value!r} is no {kinds[0].__name__}.", where=key)
    return value


def _millis(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time.", where="from_time") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
