"""What a flow did, over the records of all attempts: which state counts, which rows, and from when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult, fold_flow_results

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def record(
    status: FlowStatus, second: int = 0, *, update: str = "u1", error: Any = None, **body: Any
) -> dict[str, Any]:
    """A record of the flow ``load``."""
    return {
        "id": f"{update}-{status}-{second}",
        "timestamp": NOON + timedelta(seconds=second),
        "origin": {"update_id": update, "dataset_name": "orders", "flow_name": "load", "epoch": 2},
        "error": error,
        "details": {"flow_progress": {"status": str(status), **body}},
    }


def batch(second: int, rows: int, **more: Any) -> dict[str, Any]:
    """A record of a batch that read and wrote so many rows."""
    metrics = {"num_input_rows": rows, "num_output_rows": rows}
    return record(FlowStatus.RUNNING, second, metrics=metrics, **more)


def folded(*records: dict[str, Any]) -> FlowResult:
    """The result of the one flow."""
    (result,) = fold_flow_results(records)
    return result


FAILURE = {"exceptions": [{"message": "It broke."}, {"message": "Because of that."}]}
START, END = record(FlowStatus.STARTING, 1), record(FlowStatus.COMPLETED, 9, version=4)


def test_a_batch_that_is_reported_after_the_end_counts_and_does_not_go_on():
    """Spark reports batches by a listener that may be late; a flow that is idle after its end has ended, too."""
    late = folded(START, batch(2, 3), END, batch(10, 4), record(FlowStatus.IDLE, 11))
    assert (late.state, late.output_rows, late.batches, late.version) == ("COMPLETED", 7, 2, 4)


def test_a_record_that_is_there_twice_counts_once():
    """A killed driver's last batch is recorded again by the next one, under the same id."""
    assert folded(START, batch(2, 3), batch(2, 3), END).output_rows == 3


def test_rows_of_a_flow_without_batches_stand_at_its_end():
    """Those of the end count only where no batch has counted them."""
    metrics = {"num_input_rows": 5, "num_output_rows": 5}
    end = record(FlowStatus.COMPLETED, 9, metrics=metrics)
    assert folded(START, end).output_rows == 5
    assert folded(START, batch(2, 5), end).output_rows == 5


def test_an_attempt_that_left_a_flow_out_says_nothing_of_it():
    """What an earlier attempt did stands; a flow that was never part of anything is left out."""
    out = record(FlowStatus.EXCLUDED, 20, update="u2")
    result = folded(START, END, out)
    assert (result.state, result.update_id, result.version) == ("COMPLETED", "u1", 4)
    assert folded(out).state == "EXCLUDED"


def test_another_start_begins_anew():
    """Its time counts from there, and what an attempt before ended with is over; the version stays known."""
    failed = record(FlowStatus.FAILED, 5, error=FAILURE, will_retry=True, version=3)
    first = folded(START, failed)
    assert (first.error, first.will_retry, first.finished, first.seconds) == ("It broke.", True, False, 4.0)
    again = folded(START, failed, record(FlowStatus.QUEUED, 30, update="u2"))
    assert (again.error, again.will_retry, again.seconds, again.version) == (None, False, None, 3)
    done = folded(
        START,
        failed,
        record(FlowStatus.STARTING, 30, update="u2"),
        record(FlowStatus.COMPLETED, 32, update="u2"),
    )
    assert (done.state, done.seconds, done.version, done.update_id) == ("COMPLETED", 2.0, 3, "u2")
    assert done.finished


def test_an_end_before_the_beginning_took_no_time():
    """The clock of another machine recorded it."""
    assert folded(record(FlowStatus.STARTING, 9), record(FlowStatus.FAILED, 5)).seconds == 0.0


@pytest.mark.parametrize("status", [FlowStatus.RUNNING, FlowStatus.STARTING, FlowStatus.QUEUED])
def test_what_has_not_ended_is_not_finished(status: FlowStatus):
    """However long it has run."""
    assert not folded(START, record(status, 60)).finished


def test_what_another_version_writes_is_passed_over():
    """A status that is not known, and records of no flow."""
    odd = record(FlowStatus.COMPLETED)
    odd["details"]["flow_progress"]["status"] = "PAUSED"
    nobody = record(FlowStatus.COMPLETED)
    nobody["origin"]["flow_name"] = None
    assert fold_flow_results([odd, nobody]) == []
    assert folded(START, odd).state == "STARTING"


def test_what_the_last_batch_left_is_what_is_left():
    """Also nothing at all; a batch that does not say leaves what was known."""
    left = [batch(2, 1), batch(3, 1), batch(4, 1)]
    for one, records in zip(left, (7, 0, None), strict=True):
        one["details"]["flow_progress"]["metrics"]["backlog_records"] = records
    assert folded(START, left[0]).backlog_records == 7
    assert folded(START, *left).backlog_records == 0
