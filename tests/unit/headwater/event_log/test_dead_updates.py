"""Updates whose driver was killed: the next one writes the terminal records, once."""

from __future__ import annotations

import pytest

from headwater.event_log import details, reader
from headwater.event_log.dead_updates import close_dead_updates
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.writer import EventLogWriter


def killed(folder, update="u1", request="r1"):
    """What a driver leaves that is killed while one flow runs, one is done and one waits."""
    with EventLogWriter(folder, "orders", "Orders", update, request) as log:
        log.emit("create_update", "asked for", details=details.create_update())
        for state in (UpdateState.INITIALIZING, UpdateState.RUNNING):
            log.emit("update_progress", "", details=details.update_progress(state))
        for flow, status in (("done", "COMPLETED"), ("busy", "RUNNING"), ("waits", "QUEUED")):
            body = details.flow_progress(FlowStatus(status))
            log.emit("flow_progress", "", flow=flow, dataset=flow, epoch=2, details=body)


def close(folder, request=None):
    return close_dead_updates(folder, "orders", "Orders", request)


def terminal(folder, update="u1"):
    statuses = {}
    for event in reader.events(folder, update_id=update, event_type="flow_progress"):
        status = FlowStatus(event["details"]["flow_progress"]["status"])
        if status.terminal:
            statuses.setdefault(event["origin"]["flow_name"], []).append(str(status))
    return statuses


def test_every_flow_and_the_update_get_one_terminal_record(tmp_path):
    """The running flow is FAILED, the waiting one STOPPED, the finished one is left alone; a second look adds nothing."""
    killed(tmp_path)
    assert close(tmp_path) == ["u1"]
    assert close(tmp_path) == []
    assert terminal(tmp_path) == {"done": ["COMPLETED"], "busy": ["FAILED"], "waits": ["STOPPED"]}
    latest = reader.latest_update(tmp_path)
    assert (latest.state, latest.request_id) == ("FAILED", "r1")
    busy = next(f for f in reader.flow_results(tmp_path, update_id="u1") if f.flow == "busy")
    assert "driver" in busy.error
    assert busy.epoch == 2
    assert busy.finished


def test_flows_of_the_same_request_are_tried_again(tmp_path):
    """Where the attempt that follows is of the same request, the records say so: those who wait go on waiting."""
    killed(tmp_path)
    close(tmp_path, "r1")
    results = {f.flow: f for f in reader.flow_results(tmp_path, request_id="r1")}
    assert not results["busy"].finished
    assert not results["waits"].finished
    assert results["done"].finished


def test_updates_without_a_request_are_no_attempts_of_one(tmp_path):
    """Where neither the dead update nor the one that begins has a request, nobody waits for another attempt."""
    killed(tmp_path, request=None)
    close(tmp_path)
    assert all(flow.finished for flow in reader.flow_results(tmp_path, update_id="u1"))


def test_what_has_ended_or_holds_no_lease_is_left_alone(tmp_path):
    """Finished updates, and one that has only been asked for (it may be ending just now without a lease), stay as they are."""
    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        log.emit("create_update", "", details=details.create_update())
        log.emit("update_progress", "", details=details.update_progress(UpdateState.CANCELED))
    with EventLogWriter(tmp_path, "orders", "Orders", "u2") as log:
        log.emit("create_update", "", details=details.create_update())
    assert close(tmp_path) == []


def test_no_log_is_no_dead_update(tmp_path):
    """Before the first update there is nothing to close, and nothing is written."""
    assert close(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_records_are_handed_on(tmp_path):
    """Who asks is given the endings once they are in the log, so that hooks hear of them."""
    killed(tmp_path)
    heard = []
    close_dead_updates(tmp_path, "orders", "Orders", None, heard.extend)
    records = [(event.event_type, event.origin.update_id, event.origin.flow_name) for event in heard]
    assert records == [
        ("flow_progress", "u1", "busy"),
        ("flow_progress", "u1", "waits"),
        ("update_progress", "u1", None),
    ]
    assert {event.id for event in heard} <= {event["id"] for event in reader.events(tmp_path)}


@pytest.mark.parametrize("told", [False, True])
def test_a_killed_continuous_update(tmp_path, told):
    """It has failed, however well its flows ran; one that was killed on its way to a stop was canceled, and no flow has failed."""
    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        for state in (UpdateState.INITIALIZING, UpdateState.RUNNING):
            log.emit("update_progress", "", details=details.update_progress(state))
        flows = {
            "runs": ["STARTING", "RUNNING"],
            "waits": ["QUEUED"],
            "stumbles": ["FAILED", "RESTARTING"],
            "gone": ["FAILED"],
        }
        for flow, statuses in flows.items():
            for status in statuses:
                again = {"will_retry": True, "attempt": 1} if "RESTARTING" in statuses else {}
                body = details.flow_progress(FlowStatus(status), **again)
                log.emit("flow_progress", "", flow=flow, dataset=flow, epoch=0, details=body)
        log.emit("user_action", "", details=details.user_action("START", "ann", update_id="u1"))
        if told:
            log.emit("user_action", "", details=details.user_action("CANCEL", "ann", update_id="u1"))
    assert close(tmp_path) == ["u1"]
    assert close(tmp_path) == []
    assert reader.latest_update(tmp_path).state == ("CANCELED" if told else "FAILED")
    ends = {flow.flow: flow.state for flow in reader.flow_results(tmp_path, update_id="u1")}
    begun = "STOPPED" if told else "FAILED"
    assert ends == {"runs": begun, "waits": "STOPPED", "stumbles": begun, "gone": "FAILED"}
    errors = reader.events(tmp_path, update_id="u1", level="ERROR")
    assert bool(list(errors)) is not told
