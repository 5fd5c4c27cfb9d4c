"""Options of a repair that another action would ignore."""

from __future__ import annotations

import pytest

from headwater.doctor.repair_plan import OWNERS, RepairOptions
from headwater.preflight.damage import Repair

GIVEN = {
    "batch": 0,
    "snapshot": "x",
    "from_start": True,
    "from_version": 0,
    "from_offsets": (),
    "from_time": 0,
}


@pytest.mark.parametrize("action", Repair)
@pytest.mark.parametrize("name", GIVEN)
def test_an_option_of_another_action_is_named(name: str, action: Repair):
    """Also where it is 0: a first batch, a first version and 1970 are asked for, not left out."""
    options = RepairOptions(**{name: GIVEN[name]})
    assert options.foreign_to(action) == (None if OWNERS[name] is action else name)


def test_nothing_given_fits_every_action():
    """A form sends false for a box that is not ticked."""
    assert {RepairOptions(from_start=False).foreign_to(action) for action in Repair} == {None}
