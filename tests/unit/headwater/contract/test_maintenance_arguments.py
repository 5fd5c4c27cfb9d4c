"""What ``maintenance`` takes on the command line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.contract.maintenance_arguments import maintenance_options, parse_maintenance_arguments
from headwater.errors import UsageError
from headwater.maintenance.chore import ChoreKind


def test_kinds_of_work():
    """Kinds may be separated by commas or given again; an unknown one is named beside those that there are."""
    parsed = parse_maintenance_arguments(["p", "--only", "vacuum,optimize", "--only", "epochs"])
    assert maintenance_options(parsed).kinds == (ChoreKind.VACUUM, ChoreKind.OPTIMIZE, ChoreKind.EPOCHS)
    with pytest.raises(UsageError, match="'vacum' is no kind of work; there are optimize, ") as raised:
        parse_maintenance_arguments(["p", "--only", "vacum"])
    assert "ChoreKind" not in raised.value.what


def test_a_month_is_no_length_of_time():
    """What vacuum keeps is a length of time that is certain: a month was read as a minute."""
    with pytest.raises(UsageError, match="1 month"):
        parse_maintenance_arguments(["p", "--retention", "1 month"])
    parsed = parse_maintenance_arguments(["p", "--retention", "4 weeks", "--keep", "30d"])
    options = maintenance_options(parsed)
    assert (options.retention, options.keep) == (timedelta(weeks=4), timedelta(days=30))
