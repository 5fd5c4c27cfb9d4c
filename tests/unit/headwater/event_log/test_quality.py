"""Pass rates over time, from batches and whole refreshes, replays counted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headwater.event_log import details
from headwater.event_log.details import FlowStatus
from headwater.event_log.quality import fold_quality, rule_histories
from headwater.event_log.writer import EventLogWriter


def rule(name, passed, failed, dataset="bronze"):
    return {"name": name, "dataset": dataset, "passed_records": passed, "failed_records": failed}


def write(folder, update, batches, **more):
    with EventLogWriter(folder, "orders", "Orders", update) as log:
        for number, rules in batches:
            body = details.flow_progress(FlowStatus.RUNNING, dropped=1, expectations=rules, **more)
            log.emit(
                "flow_progress", "", flow="bronze", dataset="bronze", batch_id=number, epoch=0, details=body
            )


def test_counts_are_summed_by_update(tmp_path):
    """Batches of one update make one point; a rule that came later has fewer points; a replayed batch counts once."""
    write(tmp_path, "u1", [(0, [rule("a", 9, 1)]), (1, [rule("a", 10, 0)])])
    write(tmp_path, "u2", [(1, [rule("a", 10, 0)]), (2, [rule("a", 1, 3), rule("b", 4, 0)])], quarantined=2)
    (first, second), (dataset,) = rule_histories(tmp_path)
    assert [(p.update_id, p.passed, p.failed) for p in first.points] == [("u1", 19, 1), ("u2", 1, 3)]
    assert (first.passed, first.failed, round(first.rate, 4)) == (20, 4, 0.8333)
    assert [p.rate for p in second.points] == [1.0]
    assert (dataset.dataset, dataset.dropped, dataset.quarantined, dataset.updates) == ("bronze", 3, 2, 2)


def test_the_newest_updates_of_one_dataset(tmp_path):
    """``updates`` and ``dataset`` narrow what is shown; rows kept out are of the same updates."""
    for number in range(4):
        rules = [rule("a", number, 0), rule("c", 1, 1, "view")]
        write(tmp_path, f"u{number}", [(number, rules)], quarantined=number)
    (history,), (dataset,) = rule_histories(tmp_path, updates=2, dataset="bronze")
    assert [p.update_id for p in history.points] == ["u2", "u3"]
    assert (dataset.dropped, dataset.quarantined, dataset.updates) == (2, 5, 2)
    assert [h.dataset for h in rule_histories(tmp_path, dataset="view")[0]] == ["view"]


def test_no_rows_is_no_rate(tmp_path):
    """An update in which a rule saw no row has no rate, neither 0 nor 100 percent; no log has no rules."""
    assert rule_histories(tmp_path) == ([], [])
    write(tmp_path, "u1", [(0, [rule("a", 0, 0)])])
    assert rule_histories(tmp_path)[0][0].rate is None


def test_a_point_is_as_old_as_its_first_batch():
    """An update that runs for hours is shown where it began, however late its last batch was."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    quality = {"data_quality": {"expectations": [rule("a", 1, 0)]}}
    records = [
        {
            "id": str(hour),
            "timestamp": first + timedelta(hours=hour),
            "origin": {"update_id": "u1", "dataset_name": "bronze"},
            "details": {"flow_progress": quality},
        }
        for hour in range(3)
    ]
    ((history,), _) = fold_quality(records)
    assert [(point.at, point.passed) for point in history.points] == [(first, 3)]
