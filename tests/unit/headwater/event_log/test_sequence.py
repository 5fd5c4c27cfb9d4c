"""The order of records over writers whose clocks disagree, or were set back."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FlowInterrupted
from headwater.event_log import reader, sequence, writer
from headwater.event_log.details import FlowStatus, UpdateState, create_update, flow_progress, update_progress
from headwater.event_log.event import event_table
from headwater.event_log.sequence import greatest_sequence
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.following.dataset_progress import DatasetProgress
from headwater_airflow.following.update_record import newest_update

HOUR = 3600 * 1_000_000_000
NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000_000


class Clock:
    """A clock of a machine, in ns since 1970; it stands still unless it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOON
        monkeypatch.setattr(writer.time, "time_ns", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def attempt(folder: Path, clock: Clock, update: str, state: UpdateState, flow: FlowStatus, at: int) -> None:
    """An update of one flow that takes a minute, on a machine whose clock says ``at`` when it begins."""
    clock.now = at
    with EventLogWriter(folder, "orders", "Orders", update, "r1") as log:
        log.emit("create_update", "begun", details=create_update())
        starting = flow_progress(FlowStatus.STARTING)
        log.emit("flow_progress", "starts", flow="bronze", dataset="bronze", details=starting)
        clock.now += 60 * 1_000_000_000
        error = FlowInterrupted("The broker is away.") if flow is FlowStatus.FAILED else None
        log.emit(
            "flow_progress", "ends", flow="bronze", dataset="bronze", details=flow_progress(flow), error=error
        )
        log.emit("update_progress", str(state), details=update_progress(state))


def sequences(folder: Path) -> list[int]:
    return [record["sequence"]["data_plane_id"]["seq_no"] for record in reader.events(folder)]


def test_the_newest_update_is_the_one_that_was_written_last(tmp_path: Path, clock: Clock):
    """After a clock was set back an hour, the retry is the newest update, also of its request, and its flow's end counts."""
    attempt(tmp_path, clock, "u1", UpdateState.FAILED, FlowStatus.FAILED, NOON + HOUR)
    attempt(tmp_path, clock, "u2", UpdateState.COMPLETED, FlowStatus.COMPLETED, NOON)
    latest = reader.latest_update(tmp_path)
    assert latest is not None
    assert (latest.update_id, latest.state, latest.seconds) == ("u2", "COMPLETED", pytest.approx(60, abs=0.1))
    (result,) = reader.flow_results(tmp_path, request_id="r1")
    assert (result.update_id, result.state, result.error) == ("u2", "COMPLETED", None)
    assert result.seconds == pytest.approx(60, abs=0.1)
    newest = newest_update(SimpleNamespace(state_folder=tmp_path), "r1")  # type: ignore[arg-type]
    assert newest is not None
    assert newest.update_id == "u2"


def test_times_stay_those_of_the_writers_clock(tmp_path: Path, clock: Clock):
    """Only the order is made to ascend: a question by time is answered by the clock of the writer."""
    attempt(tmp_path, clock, "u1", UpdateState.FAILED, FlowStatus.FAILED, NOON + HOUR)
    attempt(tmp_path, clock, "u2", UpdateState.COMPLETED, FlowStatus.COMPLETED, NOON)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    before = reader.events(tmp_path, until=noon + timedelta(minutes=30))
    assert {record["origin"]["update_id"] for record in before} == {"u2"}
    after = reader.events(tmp_path, since=noon + timedelta(minutes=30))
    assert {record["origin"]["update_id"] for record in after} == {"u1"}
    naive = reader.events(tmp_path, since=datetime(2026, 3, 1, 12, 0, 30), until=noon + timedelta(minutes=30))  # noqa: DTZ001
    assert [record["message"] for record in naive] == ["ends", "COMPLETED"]
    last = max(sequences(tmp_path)[:4])
    assert {r["origin"]["update_id"] for r in reader.events(tmp_path, after=last)} == {"u2"}
    moments = [record["timestamp"] for record in reader.events(tmp_path, after=last)]
    # The beginning is part of a span, its end is not, and both hold beside a number.
    assert reader.events(tmp_path, after=last, until=moments[0]) == []
    assert len(reader.events(tmp_path, after=last, since=moments[-1])) == moments.count(moments[-1])
    assert reader.events(tmp_path, after=last, since=moments[-1], until=moments[-1]) == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5)), min_size=1, max_size=8))
def test_records_ascend_in_the_order_in_which_they_came(steps: list[tuple[str, int]]):
    """Writers side by side, each with a clock of its own that jumps: numbers ascend over all of them, and none is twice."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        clock, path = Clock(patch), Path(folder)
        logs = {
            name: stack.enter_context(EventLogWriter(path, "p", "P", name)) for name in {s for s, _ in steps}
        }
        for number, (name, hours) in enumerate(steps):
            clock.now = NOON + hours * HOUR
            logs[name].emit("user_action", f"{number}")
            logs[name].emit("user_action", f"{number}, more")
            logs[name].flush()
        messages = [record["message"] for record in reader.events(path)]
        assert messages == [text for n in range(len(steps)) for text in (f"{n}", f"{n}, more")]
        numbers = sequences(path)
        assert numbers == sorted(set(numbers))


def test_a_log_without_statistics_is_asked_for_its_rows(tmp_path: Path, clock: Clock):
    """Where another writer kept no statistics of the numbers, they are read."""
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    attempt(tmp_path, clock, "u1", UpdateState.FAILED, FlowStatus.FAILED, NOON + HOUR)
    table = event_table(tmp_path)
    greatest = max(sequences(tmp_path))
    assert greatest_sequence(table) == greatest
    rows = pa.table(DeltaTable(str(table)).to_pyarrow_table())
    bare = tmp_path / "bare"
    write_deltalake(str(bare), rows, configuration={"delta.dataSkippingStatsColumns": "id"})
    assert greatest_sequence(bare) == greatest


def test_an_update_that_runs_is_of_this_run(tmp_path: Path, clock: Clock):
    """A run was cleared: what was over then is of the run before, what runs is of this one though its clock is slow."""
    attempt(tmp_path, clock, "u1", UpdateState.COMPLETED, FlowStatus.COMPLETED, NOON - HOUR)
    clock.now = NOON - 60 * 1_000_000_000
    cleared = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with EventLogWriter(tmp_path, "orders", "Orders", "u2", "r1") as log:
        log.emit("create_update", "begun", details=create_update(requested_at=cleared))
    project = SimpleNamespace(state_folder=tmp_path)
    progress = DatasetProgress(project, None, "r1", cleared)  # type: ignore[arg-type]
    assert progress._updates_before() == frozenset({"u1"})


def test_who_writes_alone_looks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The log's greatest number is looked up at the first append, and again only after another writer's."""
    looks: list[Path] = []

    def look(table: Path) -> int:
        looks.append(table)
        return greatest_sequence(table)

    with EventLogWriter(tmp_path, "p", "P", "u0") as log:
        log.emit("user_action", "first")
    monkeypatch.setattr(sequence, "greatest_sequence", look)
    with EventLogWriter(tmp_path, "p", "P", "u1") as one, EventLogWriter(tmp_path, "p", "P", "u2") as other:
        for number in range(5):
            one.emit("user_action", f"{number}")
            one.flush()
        assert len(looks) == 1
        other.emit("user_action", "between")
        other.flush()
        one.emit("user_action", "after")
        one.flush()
        assert len(looks) == 3
    assert [record["message"] for record in reader.events(tmp_path)][-2:] == ["between", "after"]
