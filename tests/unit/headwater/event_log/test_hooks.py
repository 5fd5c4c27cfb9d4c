"""Event hooks: what they hear, what their failures do, and that an update never waits for one for ever."""

from __future__ import annotations

import json
import threading
import time

from headwater.definitions.event_hook import EventHook
from headwater.event_log import details, reader
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.hooks import EventHooks
from headwater.event_log.writer import EventLogWriter


def progress(log, state=UpdateState.RUNNING, **more):
    log.emit("update_progress", f"is {state}", details=details.update_progress(state), **more)


def run(folder, hooks, tell, seconds=10.0):
    """Write an update's events with hooks listening; returns whether all were handed on."""
    with EventLogWriter(folder, "orders", "Orders", "u1") as log:
        heard = EventHooks(hooks, log)
        heard.start()
        tell(log)
        log.flush()
        return heard.drain(seconds)


def states(folder):
    records = reader.events(folder, event_type="hook_progress")
    return [tuple(event["details"]["hook_progress"][key] for key in ("name", "state")) for event in records]


def test_hooks_hear_stable_events_once_written_and_in_order(tmp_path):
    """Each hook gets every STABLE event in the order of the log, after it is in the table; none of hook_progress."""
    heard, in_table = [], []

    def first(event):
        heard.append(("first", event["event_type"], event["message"]))
        in_table.append(event["id"] in {e["id"] for e in reader.events(tmp_path)})
        event["details"].clear()

    def second(event):
        heard.append(("second", event["event_type"], event["details"]["update_progress"]["state"]))

    def tell(log):
        progress(log, UpdateState.RUNNING)
        log.emit("planning_information", "not settled", maturity="EVOLVING")
        progress(log, UpdateState.COMPLETED)

    assert run(tmp_path, [EventHook("first", first), EventHook("second", second)], tell)
    assert heard == [
        ("first", "update_progress", "is RUNNING"),
        ("second", "update_progress", "RUNNING"),
        ("first", "update_progress", "is COMPLETED"),
        ("second", "update_progress", "COMPLETED"),
    ]
    assert in_table == [True, True]
    assert states(tmp_path) == [("first", "ENABLED"), ("second", "ENABLED")]


def test_events_of_killed_updates_come_first(tmp_path):
    """What was written for others before the update began is handed on, before its own."""
    heard, earlier = [], []
    with EventLogWriter(tmp_path, "orders", "Orders", "u0") as log:
        log.subscribe(earlier.extend)
        progress(log, UpdateState.FAILED)
    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        hooks = EventHooks([EventHook("hear", lambda event: heard.append(event["origin"]["update_id"]))], log)
        hooks.start(earlier)
        progress(log, UpdateState.RUNNING)
        log.flush()
        assert hooks.drain()
    assert heard == ["u0", "u1"]


def test_an_event_is_plain_json(tmp_path):
    """What a hook is given can be sent on as JSON: the columns of the log, details and origin as dicts."""
    sent = []
    run(tmp_path, [EventHook("send", lambda event: sent.append(json.dumps(event)))], progress)
    event = json.loads(sent[0])
    assert set(event) >= {"id", "origin", "timestamp", "message", "level", "details", "event_type", "error"}
    assert event["origin"]["update_id"] == "u1"
    assert event["details"] == {"update_progress": {"state": "RUNNING"}}
    assert event["timestamp"].endswith("+00:00")


def test_disabled_after_one_failure_more_than_allowed(tmp_path):
    """With a limit of n the n+1st failure in a row disables a hook; a call that succeeds resets the count."""
    calls = []

    def shaky(event):
        calls.append(event["message"])
        if event["message"] != "is QUEUED":
            raise RuntimeError("password=hunter2 is wrong")

    def tell(log):
        for state in ("RUNNING", "QUEUED", "RUNNING", "STOPPING", "COMPLETED"):
            progress(log, UpdateState(state))

    run(tmp_path, [EventHook("shaky", shaky, 1), EventHook("fine", lambda _: None, 0)], tell)
    assert calls == ["is RUNNING", "is QUEUED", "is RUNNING", "is STOPPING"]
    assert [state for name, state in states(tmp_path) if name == "shaky"] == [
        *("ENABLED", "FAILED", "FAILED", "FAILED", "DISABLED"),
    ]
    failed = [e for e in reader.events(tmp_path, level="WARN") if e["error"]]
    assert all("hunter2" not in json.dumps(e, default=str) for e in failed)
    assert failed[0]["error"]["exceptions"][0]["class_name"] == "RuntimeError"


def test_without_a_limit_a_hook_is_never_disabled(tmp_path):
    """With None a hook that fails each time is called each time, also when it calls exit()."""
    calls = []

    def leave(event):
        calls.append(event["id"])
        raise SystemExit(3)

    def tell(log):
        for _ in range(7):
            progress(log)

    assert run(tmp_path, [EventHook("leave", leave)], tell)
    assert len(calls) == 7
    assert ("leave", "DISABLED") not in states(tmp_path)


def test_a_hook_that_hangs_is_given_up(tmp_path):
    """The end of an update waits a bounded time; the log says that events were not handed on."""
    never = threading.Event()
    started = time.monotonic()
    try:
        handed_on = run(tmp_path, [EventHook("hang", lambda _: never.wait(60))], progress, seconds=0.3)
        assert not handed_on
        assert time.monotonic() - started < 5
    finally:
        never.set()
    assert states(tmp_path)[-1] == ("hang", "STOPPED")
    assert "hang was still running" in reader.events(tmp_path)[-1]["message"]


def test_hooks_do_not_hold_up_the_writer(tmp_path):
    """Events are written while a hook is busy: it runs beside the update."""
    go = threading.Event()

    def slow(_):
        go.wait(10)

    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        hooks = EventHooks([EventHook("slow", slow)], log)
        hooks.start()
        progress(log)
        log.flush()
        log.emit("flow_progress", "goes on", flow="f", details=details.flow_progress(FlowStatus.COMPLETED))
        log.flush()
        assert reader.events(tmp_path)[-1]["message"] == "goes on"
        go.set()
        assert hooks.drain(10)


def test_without_hooks_nothing_is_started(tmp_path):
    """A pipeline without hooks has no thread for them and no events of theirs."""
    before = threading.active_count()
    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        hooks = EventHooks([], log)
        hooks.start()
        assert threading.active_count() == before + 1
        progress(log)
        assert hooks.drain(0)
    assert states(tmp_path) == []
