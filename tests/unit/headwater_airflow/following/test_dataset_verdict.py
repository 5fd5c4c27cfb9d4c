"""When a table is done, and in which colour."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.dags.pipeline_folder import write_pipeline

from headwater.event_log.flow_result import FlowResult
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict, WatchedDataset, decide

OPEN, DONE, BROKEN = UpdateOutcome.UNFINISHED, UpdateOutcome.SUCCEEDED, UpdateOutcome.FAILED
SILVER = WatchedDataset("silver", ("silver",), recomputed=False, ancestors=frozenset({"bronze"}))
TWO_FLOWS = WatchedDataset("silver", ("one", "two"), recomputed=False, ancestors=frozenset())


def flow(state, *, name="silver", dataset="silver", update="u1", **values):
    return FlowResult(update, dataset, name, state, **values)


@pytest.mark.parametrize("state", ["QUEUED", "STARTING", "RUNNING", "IDLE"])
def test_a_table_at_work_is_waited_for(state):
    """Nothing is decided while a flow is on its way."""
    assert decide(SILVER, [flow(state)], OPEN) is None
    assert decide(SILVER, [], OPEN) is None


def test_a_table_that_got_rows_is_updated():
    """Rows, version and update are reported as soon as the flow is done, though the update goes on."""
    decided = decide(
        SILVER,
        [
            flow("COMPLETED", input_rows=5, output_rows=3, dropped_rows=2, version=7),
            flow("RUNNING", dataset="gold"),
        ],
        OPEN,
    )
    assert decided.ending is Ending.UPDATED
    assert decided.asset_extra() == {
        "version": 7,
        "rows": 3,
        "dropped_rows": 2,
        "quarantined_rows": 0,
        "update_id": "u1",
    }


def test_a_verdict_survives_the_way_through_a_trigger():
    """What a trigger's event carries is the verdict again on the other side."""
    verdict = Verdict(Ending.FAILED, "no", 1, 2, 3, 4, 5, "u1")
    assert Verdict.of_payload(verdict.payload()) == verdict


def test_a_completed_stream_without_rows_changed_nothing():
    """A stream that found nothing wakes nobody; a view that was recomputed to no rows did change."""
    assert decide(SILVER, [flow("COMPLETED")], OPEN).ending is Ending.UNCHANGED
    view = WatchedDataset("silver", ("silver",), recomputed=True, ancestors=frozenset())
    assert decide(view, [flow("COMPLETED", version=3)], OPEN).ending is Ending.UNCHANGED
    assert decide(view, [flow("COMPLETED", batches=1)], OPEN).ending is Ending.UPDATED


def test_every_flow_of_a_table_counts():
    """A table with two flows is done when both are, with the sum of their rows."""
    one = flow("COMPLETED", name="one", output_rows=2, input_rows=2)
    assert decide(TWO_FLOWS, [one], OPEN) is None
    both = decide(TWO_FLOWS, [one, flow("COMPLETED", name="two", output_rows=3, input_rows=3)], OPEN)
    assert both.output_rows == 5
    assert decide(TWO_FLOWS, [one, flow("FAILED", name="two", error="no")], OPEN).ending is Ending.FAILED


def test_a_failure_that_is_tried_again_is_waited_for():
    """With `will_retry` the table keeps waiting, until the update itself is given up."""
    failing = flow("FAILED", error="broker away", will_retry=True)
    assert decide(SILVER, [failing], OPEN) is None
    assert decide(SILVER, [failing], BROKEN).message == "broker away"


def test_a_final_failure_ends_with_the_tables_own_error():
    """The task turns red at once, with the message of its flow."""
    decided = decide(SILVER, [flow("FAILED", error="bad rule")], OPEN)
    assert (decided.ending, decided.message) == (Ending.FAILED, "bad rule")


def test_an_old_failure_is_not_believed_while_the_update_is_run_again():
    """After a clear, the failure of the last try stands in the log; the new try decides."""
    old, new = flow("FAILED", error="old"), flow("FAILED", error="new", update="u2")
    assert decide(SILVER, [old], OPEN, old_failures={"u1"}) is None
    assert decide(SILVER, [old], BROKEN, old_failures={"u1"}).message == "old"
    assert decide(SILVER, [new], OPEN, old_failures={"u1"}).message == "new"


def test_a_table_behind_a_failed_one_is_left_out():
    """A flow that was skipped because one before it failed is not green, and names the culprit."""
    decided = decide(
        SILVER, [flow("SKIPPED"), flow("FAILED", name="bronze", dataset="bronze", error="no")], OPEN
    )
    assert decided.ending is Ending.LEFT_OUT
    assert "bronze" in decided.message


def test_a_skipped_table_without_a_failure_has_no_news():
    """A flow that is skipped since its sources did not move is fine."""
    assert decide(SILVER, [flow("SKIPPED")], OPEN).ending is Ending.UNCHANGED


def test_an_excluded_table_is_left_out():
    """A selection that leaves the table out is no success."""
    assert decide(SILVER, [flow("EXCLUDED")], OPEN).ending is Ending.LEFT_OUT
    assert decide(SILVER, [flow("COMPLETED", dataset="gold")], DONE).ending is Ending.LEFT_OUT


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [
        (DONE, Ending.UNCHANGED),
        (BROKEN, Ending.FAILED),
        (UpdateOutcome.NOT_RUN, Ending.LEFT_OUT),
    ],
)
def test_the_end_of_the_update_decides_where_the_log_is_silent(outcome, ending):
    """No task waits for an update that is over."""
    assert decide(SILVER, [], outcome).ending is ending


@pytest.mark.parametrize(
    ("results", "ending"),
    [
        (["COMPLETED", "COMPLETED"], Ending.UPDATED),
        (["COMPLETED", "STOPPED"], Ending.FAILED),
        (["COMPLETED"], Ending.FAILED),
        (["COMPLETED", "RUNNING"], Ending.FAILED),
    ],
)
def test_a_table_that_was_done_before_its_update_failed(results, ending):
    """What all of its flows have written wakes those who wait for it; where one of them is missing, it is not done."""
    mine = [
        flow(state, name=name, output_rows=1) for name, state in zip(("one", "two"), results, strict=False)
    ]
    assert decide(TWO_FLOWS, [*mine, flow("FAILED", dataset="gold")], BROKEN).ending is ending


@pytest.mark.parametrize(("rows", "ending"), [(5, Ending.UPDATED), (0, Ending.LEFT_OUT)])
def test_an_update_that_is_marked_as_a_success_while_it_runs(rows, ending):
    """Rows that were committed until then are announced: nothing new would be left to wake anybody. Without any, the table is left out."""
    decided = decide(SILVER, [flow("RUNNING", input_rows=rows, output_rows=rows, version=4)], DONE)
    assert (decided.ending, decided.asset_extra()["rows"]) == (ending, rows)
    assert "before this table was done" in decided.message


def test_a_stopped_table_is_decided_by_the_update():
    """A stop at a batch boundary says nothing alone: the update ends it, well or not."""
    stopped = flow("STOPPED", output_rows=2, input_rows=2)
    assert decide(SILVER, [stopped], OPEN) is None
    assert decide(SILVER, [stopped], BROKEN).ending is Ending.FAILED


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("success", DONE),
        ("failed", BROKEN),
        ("upstream_failed", BROKEN),
        ("skipped", UpdateOutcome.NOT_RUN),
        ("up_for_retry", OPEN),
        ("running", OPEN),
        (None, OPEN),
    ],
)
def test_a_state_of_the_task_is_an_outcome(state, outcome):
    """A task that is to be tried again is not over."""
    assert UpdateOutcome.of_task_state(state) is outcome


def test_a_watched_dataset_knows_all_that_it_depends_on(tmp_path):
    """Ancestors reach through views, and flows are those of the manifest."""
    from headwater.graph.manifest import read_manifest

    folder = write_pipeline(
        tmp_path / "p", {"a": (), "v": ("a",), "b": ("v",)}, kinds={"v": "temporary_view"}
    )
    watched = WatchedDataset.of(read_manifest(folder / "manifest.json"), "b")
    assert watched == WatchedDataset("b", ("b",), recomputed=False, ancestors=frozenset({"a"}))
    with pytest.raises(KeyError):
        WatchedDataset.of(SimpleNamespace(outputs=[]), "b")


@pytest.mark.parametrize(
    ("rows", "ending"),
    [({"output_rows": 3}, Ending.UPDATED), ({"input_rows": 5}, Ending.UPDATED), ({}, Ending.UNCHANGED)],
)
@pytest.mark.parametrize("state", ["STOPPED", "COMPLETED"])
def test_a_table_that_was_stopped(state, rows, ending):
    """What it had taken in until then counts, also where all of it were deletes, or events that come late."""
    assert decide(SILVER, [flow(state, **rows)], DONE).ending is ending


def test_updates_from_before_the_run_was_cleared():
    """They decide nothing while the task is at work, whatever they ended with."""
    for state in ("COMPLETED", "FAILED"):
        before = flow(state, update="old", output_rows=1)
        assert decide(SILVER, [before], OPEN, old_updates={"old"}) is None
        assert decide(SILVER, [before], OPEN) is not None


def test_updates_that_had_failed_before_anybody_watched():
    """Their completed flows count, and their failures do not: a cleared task may be about to try again."""
    assert decide(SILVER, [flow("COMPLETED", update="old", output_rows=1)], OPEN, old_failures={"old"}).ending is Ending.UPDATED  # fmt: skip
    assert decide(SILVER, [flow("FAILED", update="old")], OPEN, old_failures={"old"}) is None
    assert (
        decide(SILVER, [flow("FAILED", update="old")], BROKEN, old_failures={"old"}).ending is Ending.FAILED
    )


def test_the_version_after_all_flows():
    """It is that of the flow that wrote last."""
    results = [flow("COMPLETED", name="one", version=7), flow("COMPLETED", name="two", version=5)]
    assert decide(TWO_FLOWS, results, OPEN).version == 7
