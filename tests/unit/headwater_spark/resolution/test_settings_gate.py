"""Flows that change settings of the session are alone in it; the others use it side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.plans.test_session_settings import Conf

from headwater_spark.resolution.settings_gate import SettingsGate

ZONE = "spark.sql.session.timeZone"
TOKYO = {ZONE: "Asia/Tokyo"}


class Flow:
    """A flow that is in its block, in a thread of its own, until it is let go."""

    def __init__(self, block: AbstractContextManager[None], conf: Conf) -> None:
        self.entered, self._go = threading.Event(), threading.Event()
        self.zones: list[str] = []
        self._block, self._conf = block, conf
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._block:
            self.zones.append(self._conf[ZONE])
            self.entered.set()
            self._go.wait(30)
            self.zones.append(self._conf[ZONE])

    def is_in(self) -> bool:
        """Whether it comes to be in its block."""
        return self.entered.wait(0.2)

    def ends(self) -> None:
        """Let it leave its block."""
        self._go.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


class Session:
    """A session with a time zone, and its gate."""

    def __init__(self) -> None:
        self.conf = Conf({ZONE: "UTC"})
        session: Any = SimpleNamespace(conf=self.conf)
        self.gate = SettingsGate(session, threading.RLock())

    def flow(self, own: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None) -> Flow:
        """A flow that comes to the gate now."""
        return Flow(self.gate.in_force(own or {}, overrides), self.conf)


def test_a_flow_with_settings_waits_until_the_others_are_through_and_keeps_the_next_out():
    """None of the others sees them, from its first expression to its last; who comes while it waits goes after it."""
    session = Session()
    first, second = session.flow(), session.flow()
    assert first.is_in()
    assert second.is_in()
    changing = session.flow(TOKYO)
    assert not changing.is_in()
    late = session.flow()
    assert not late.is_in()
    first.ends()
    assert not changing.is_in()
    second.ends()
    assert changing.is_in()
    assert not late.is_in()
    changing.ends()
    assert late.is_in()
    late.ends()
    assert changing.zones == ["Asia/Tokyo"] * 2
    assert {*first.zones, *second.zones, *late.zones} == {"UTC"}


def test_a_stream_without_settings_starts_beside_a_long_refresh():
    """What its state was laid out with is in force for its start, and it waits for no refresh without settings."""
    session = Session()
    refresh = session.flow()
    assert refresh.is_in()
    stream = session.flow({}, {"spark.sql.shuffle.partitions": "3"})
    assert stream.is_in()
    assert session.conf["spark.sql.shuffle.partitions"] == "3"
    stream.ends()
    refresh.ends()
    assert session.conf == {ZONE: "UTC"}


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("spark.sql.shuffle.partitions", False),
        ("spark.sql.adaptive.enabled", False),
        ("pipelines.trigger.interval", False),
        ("spark.sql.ansi.enabled", True),
        ("spark.sql.files.ignoreCorruptFiles", True),
    ],
)
def test_settings_that_change_nobodys_rows_keep_nobody_waiting(name: str, waits: bool):
    """A view that only says how it runs is refreshed beside the others; one that changes what rows are is not."""
    session = Session()
    refresh = session.flow()
    assert refresh.is_in()
    other = session.flow({name: "3"})
    assert other.is_in() is not waits
    refresh.ends()
    other.ends()


def test_a_stream_with_overrides_alone_waits_for_settings_of_another():
    """It would take them along for as long as it runs."""
    session = Session()
    changing = session.flow(TOKYO)
    assert changing.is_in()
    stream = session.flow({}, {})
    assert not stream.is_in()
    changing.ends()
    stream.ends()
    assert stream.zones == ["UTC", "UTC"]


def test_a_block_within_a_block_waits_for_nobody():
    """A flow that is in goes on, whoever waits for its end."""
    session = Session()
    with session.gate.in_force({}, None):
        changing = session.flow(TOKYO)
        assert not changing.is_in()
        with session.gate.in_force({}, None):
            pass
        assert not changing.is_in()
    assert changing.is_in()
    changing.ends()
    with (
        session.gate.in_force(TOKYO, None),
        session.gate.in_force({}, None),
        session.gate.in_force(TOKYO, {}),
    ):
        late = session.flow()
        assert not late.is_in()
    assert late.is_in()
    late.ends()
    assert late.zones == ["UTC", "UTC"]


def test_the_flows_of_a_table_that_are_replaced_together_have_each_its_settings():
    """A thread that goes from a flow without settings to one with some is alone from then on, and has them for that flow."""
    session = Session()
    with session.gate.in_force({}, None):
        with session.gate.in_force(TOKYO, None):
            other = session.flow()
            assert session.conf[ZONE] == "Asia/Tokyo"
            assert not other.is_in()
        assert session.conf[ZONE] == "UTC"
    assert other.is_in()
    other.ends()
    assert other.zones == ["UTC", "UTC"]


def test_two_that_would_wait_for_each_other_are_refused():
    """Of two threads that change settings midway the second fails, and the first goes on."""
    session = Session()
    both_in, refused = threading.Barrier(2), threading.Event()

    def first() -> str:
        with session.gate.in_force({}, None):
            both_in.wait(30)
            with session.gate.in_force(TOKYO, None):
                assert refused.wait(30)
                return str(session.conf[ZONE])

    with ThreadPoolExecutor() as threads:
        going_on = threads.submit(first)
        with session.gate.in_force({}, None):
            both_in.wait(30)
            time.sleep(0.2)
            with pytest.raises(RuntimeError, match="can't both"), session.gate.in_force(TOKYO, None):
                pass
        refused.set()
        assert going_on.result(30) == "Asia/Tokyo"


def test_a_flow_that_fails_lets_the_next_ones_in():
    """Its settings are put back, and nobody waits for it."""
    session = Session()
    with pytest.raises(ValueError, match="broken"), session.gate.in_force(TOKYO, None):
        raise ValueError("broken")
    assert session.conf == {ZONE: "UTC"}
    with ThreadPoolExecutor() as threads:
        flows = list(threads.map(lambda _: session.flow(), range(4)))
    assert all(flow.is_in() for flow in flows)
    for flow in flows:
        flow.ends()
