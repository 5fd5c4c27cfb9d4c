"""Where rows can't be quarantined or compared, the definition is refused."""

from __future__ import annotations

import pytest
from tests.unit.headwater_spark.update_parts import dataset, flow

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.errors import InvalidExpectation
from headwater.quarantine.columns import UNREADABLE_FILE
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.resolution.judged_flows import check_judged

TABLE, VIEW, MV = DatasetKind.STREAMING_TABLE, DatasetKind.TEMPORARY_VIEW, DatasetKind.MATERIALIZED_VIEW
QUARANTINE = Expectation("r", "id > 0", ViolationAction.QUARANTINE)
DROP = Expectation("d", "id > 0", ViolationAction.DROP)
UNIQUE = Expectation("u", "", ViolationAction.DROP, unique=UniqueKey(("id",)))
RESERVED = Expectation(UNREADABLE_FILE.upper(), "id > 0", ViolationAction.WARN)
PART = flow(replace_where="day > 1")


@pytest.mark.parametrize(
    ("rules", "kind", "one", "mode", "why"),
    [
        ((DROP,), VIEW, flow(), OutputMode(OutputKind.COMPLETE), None),
        ((QUARANTINE,), TABLE, flow(), OutputMode(), None),
        ((QUARANTINE,), TABLE, flow(), OutputMode(OutputKind.CHANGES), None),
        ((QUARANTINE,), MV, flow(), OutputMode(), None),
        ((UNIQUE,), MV, PART, OutputMode(), None),
        ((RESERVED, DROP), TABLE, flow(), OutputMode(), None),
        ((QUARANTINE,), VIEW, flow(), OutputMode(), "quarantines rows, and 'orders' is a view"),
        ((DROP, UNIQUE), VIEW, flow(), OutputMode(), "compares rows, and 'orders' is a view"),
        ((QUARANTINE,), MV, PART, OutputMode(), "replaces a part"),
        ((QUARANTINE,), TABLE, flow(), OutputMode(OutputKind.UPDATE), "running aggregation"),
        ((UNIQUE,), TABLE, flow(), OutputMode(OutputKind.COMPLETE), "running aggregation"),
        ((QUARANTINE, RESERVED), TABLE, flow(), OutputMode(), "is taken"),
    ],
)
def test_what_can_not_be_judged(rules, kind, one, mode, why):
    """Rules of views, of aggregations that run on, of parts that are replaced; and the name that damaged files stand under."""
    table = dataset(expectations=rules)
    if why is None:
        check_judged(table, kind, one, mode)
        return
    with pytest.raises(InvalidExpectation, match=why):
        check_judged(table, kind, one, mode)
