"""What a form of a repair may hold: anybody may post anything."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.doctor.repair_plan import RepairOptions
from headwater.errors import UsageError
from headwater.preflight.damage import Repair
from headwater_airflow.forms.repair_form import read_repair, repair_params


def read(action: Repair = Repair.NEW_EPOCH, **more: Any) -> RepairOptions:
    """The options of a form for the flow ``bronze``."""
    form = read_repair({"flow": "bronze", "action": str(action), **more})
    assert (form.flow, form.action) == ("bronze", action)
    return form.options


def test_a_time_is_in_milliseconds_and_of_utc_unless_it_says_otherwise():
    """The checkpoint of a file source counts in milliseconds since 1970."""
    assert read(from_time="1970-01-02T00:00:00.5").from_time == 86_400_500
    assert read(from_time="1970-01-02T02:00:00+02:00").from_time == 86_400_000
    assert read().from_time is None


def test_values_that_are_zero_or_empty_count_as_values():
    """Version 0 and batch 0 are positions; a list of no offsets is one, too."""
    assert read(from_version=0) == RepairOptions(from_version=0)
    assert read(Repair.REWIND, batch=0) == RepairOptions(batch=0)
    assert read(from_offsets=[1, None]) == RepairOptions(from_offsets=(1, None))
    assert read(from_start=True) == RepairOptions(from_start=True)
    assert read(Repair.RESTORE, snapshot="s1") == RepairOptions(snapshot="s1")


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"flow": None}, "flow"),
        ({"flow": "../up"}, "flow"),
        ({"action": "drop"}, "action"),
        ({"action": str(Repair.FULL_REFRESH)}, "action"),
        ({"from_version": True}, "from_version"),
        ({"from_version": "3"}, "from_version"),
        ({"from_start": 1}, "from_start"),
        ({"from_offsets": "[1]"}, "from_offsets"),
        ({"from_time": 5}, "from_time"),
        ({"from_time": "yesterday"}, "from_time"),
        ({"batch": 3}, "batch"),
        ({"batch": 0}, "batch"),
        ({"snapshot": "s1"}, "snapshot"),
    ],
)
def test_what_has_no_meaning_is_refused_by_its_field(values: dict[str, Any], where: str):
    """A value of another kind, a truth value for a number, or an option of another action."""
    with pytest.raises(UsageError) as refusal:
        read_repair({"flow": "bronze", "action": str(Repair.NEW_EPOCH), **values})
    assert refusal.value.where == where


def test_a_form_begins_with_a_dry_run_of_the_first_flow():
    """Nothing is changed by a form that is sent as it comes, and no action of it needs Spark."""
    params = repair_params(["bronze", "silver"])
    assert (params["flow"].value, params["dry_run"].value, params["action"].value) == (
        "bronze",
        True,
        str(Repair.MEND),
    )
    assert str(Repair.FULL_REFRESH) not in params["action"].schema["enum"]
    assert repair_params([])["flow"].value == ""
