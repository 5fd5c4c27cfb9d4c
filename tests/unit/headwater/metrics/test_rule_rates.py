"""How many rows fail the rules of a table."""

from __future__ import annotations

import pytest

from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.writer import EventLogWriter
from headwater.metrics.rule_rates import rule_rates


@pytest.fixture
def tell(tmp_path):
    """Record batches of an update: rows that passed and failed the rule `positive`."""

    def write(update, *batches):
        with EventLogWriter(tmp_path, "orders", "orders", update, None) as log:
            for number, (passed, failed) in enumerate(batches):
                log.emit(
                    "flow_progress",
                    "a batch",
                    flow=f"flow_{update}",
                    dataset="silver",
                    batch_id=number,
                    epoch=0,
                    details=flow_progress(
                        FlowStatus.RUNNING,
                        expectations=[
                            {
                                "name": "positive",
                                "dataset": "silver",
                                "passed_records": passed,
                                "failed_records": failed,
                            }
                        ],
                    ),
                )
        return [(r.dataset, r.rule, r.passed, r.failed, r.failed_percent) for r in rule_rates(tmp_path)]

    return write


def test_batches_of_the_newest_update_add_up(tell):
    """An update in which the rule saw no row tells nothing; a newer one with rows takes the place of those before."""
    assert tell("1", (90, 0), (5, 5)) == [("silver", "positive", 95, 5, 5.0)]
    assert tell("2", (0, 0)) == [("silver", "positive", 95, 5, 5.0)]
    assert tell("3", (1, 3)) == [("silver", "positive", 1, 3, 75.0)]


def test_updates_without_news_change_nothing(tell, tmp_path, monkeypatch):
    """However many there are: rows that failed are not over because nothing has come since."""
    monkeypatch.setattr("headwater.metrics.rule_rates._RECORDS", 5)
    before = tell("1", (5, 5))
    with EventLogWriter(tmp_path, "orders", "orders", "2", None) as log:
        for _ in range(6):
            body = flow_progress(
                FlowStatus.COMPLETED, metrics={"num_input_rows": 0}, dropped=0, quarantined=0
            )
            log.emit("flow_progress", "no news", flow="flow_1", dataset="silver", details=body)
    assert tell("3") == before


def test_a_pipeline_that_never_ran_has_no_rates(tmp_path):
    """There is no log yet."""
    assert rule_rates(tmp_path) == []
