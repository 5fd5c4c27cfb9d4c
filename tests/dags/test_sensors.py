"""The sensors over tables and checkpoints: what they wait for, in a real event loop, on real tables."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from deltalake import DeltaTable, write_deltalake
from tests.counted_work import counted_work
from tests.dags.observed_pipeline import many_tables, write_observed_pipeline

from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.delta_log.versions import table_head
from headwater.errors import HeadwaterError, InvalidName, SourceUnreachable
from headwater_airflow.conditions.lag_reading import LagLimits, read_lag
from headwater_airflow.conditions.table_version import TableVersionCondition
from headwater_airflow.sensors.change_feed import ChangeFeedSensor
from headwater_airflow.sensors.checkpoint_health import CheckpointHealthSensor
from headwater_airflow.sensors.freshness import FreshnessSensor
from headwater_airflow.sensors.table_version import TableVersionSensor
from headwater_airflow.sensors.watermark import WatermarkSensor
from headwater_airflow.triggers.condition import ConditionTrigger

POLL = 0.05


@pytest.fixture
def tables(medallion, roots):
    """Commit rows to a table of the pipeline `medallion`, of which each flow has a checkpoint."""

    def commit(name, ids=(1,)):
        path = roots / "warehouse" / "shop" / name
        write_deltalake(path, pa.table({"id": list(ids)}), mode="append")
        checkpoint = flow_checkpoint(medallion, name, name)
        if checkpoint.read_state() is None:
            checkpoint.write_state(FlowState(sink_id=table_head(path).table_id, completed=True))
            batch(name)
        return path

    def batch(name, watermark=0, number=0):
        folder = flow_checkpoint(medallion, name, name).epoch_folder(0)
        for part, text in (("offsets", "{}\n-"), ("commits", f'{{"nextBatchWatermarkMs":{watermark}}}')):
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / str(number)).write_text(f"v1\n{text}")
        (folder / "metadata").write_text('{"id": "query"}')

    commit.batch = batch
    return commit


def deferred(sensor):
    """The trigger of a sensor that has to wait, as the triggerer would make it of what is stored."""
    with pytest.raises(TaskDeferred) as waiting:
        sensor.execute({})
    path, arguments = waiting.value.trigger.serialize()
    assert path == "headwater_airflow.triggers.condition.ConditionTrigger"
    assert waiting.value.timeout.total_seconds() == sensor.timeout
    return ConditionTrigger(**json.loads(json.dumps(arguments)))


def resumed(sensor, after, seconds=5):
    """What the sensor returns when `after` has been done while it waits; TimeoutError if it waits on."""

    async def run(trigger):
        asyncio.get_running_loop().call_later(0.2, after)
        return await asyncio.wait_for(anext(trigger.run()), seconds)

    event = asyncio.run(run(deferred(sensor)))
    return sensor.resume({}, event.payload)


def sensor(kind, **arguments):
    return kind(task_id="wait", poke_interval=POLL, timeout=60, **arguments)


def test_freshness_is_waited_for(tables):
    """A pipeline with a table that has no data yet is not fresh; with it, the result has the ages."""
    for name in ("bronze", "silver"):
        tables(name)
    waiting = sensor(FreshnessSensor, pipeline="medallion", max_seconds=600)
    event = resumed(waiting, lambda: tables("gold"))
    assert [entry["dataset"] for entry in event["datasets"]] == ["bronze", "silver", "gold"]
    assert waiting.execute({})["datasets"][2]["version"] == 0


def test_one_stale_table_holds_the_sensor(tables):
    """Its age is that of the last commit of data: optimize does not make it fresh."""
    path = tables("bronze")
    tables("bronze", [2])
    time.sleep(1.1)
    waiting = sensor(FreshnessSensor, pipeline="medallion", dataset="bronze", max_seconds=1)
    with pytest.raises(TimeoutError):
        resumed(waiting, lambda: DeltaTable(path).optimize.compact(), seconds=0.6)
    assert resumed(waiting, lambda: tables("bronze", [3]))["datasets"][0]["version"] == 3


def test_a_watermark_is_waited_for(tables):
    """First no stream has one, then it is before the point in time, then past it."""
    tables("bronze")
    waiting = sensor(WatermarkSensor, pipeline="medallion", reached="2026-01-01T12:00:00+00:00")
    point = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1000
    with pytest.raises(TimeoutError):
        resumed(waiting, lambda: tables.batch("bronze", int(point) - 1), seconds=0.6)
    event = resumed(waiting, lambda: tables.batch("bronze", int(point)))
    assert [flow["flow"] for flow in event["flows"]] == ["bronze"]
    near = sensor(WatermarkSensor, pipeline="medallion", max_seconds=60)
    assert resumed(near, lambda: tables.batch("bronze", int(time.time() * 1000)))


def test_a_mount_that_is_away_for_a_moment_ends_no_sensor(tables, monkeypatch):
    """A stale handle of a network's file system is looked at again, in the task as in the triggerer."""
    tables("bronze")
    real, failures = TableVersionCondition.look, [OSError(116, "Stale file handle") for _ in range(2)]

    def look(condition):
        if failures:
            raise failures.pop()
        return real(condition)

    monkeypatch.setattr(TableVersionCondition, "look", look)
    waiting = sensor(TableVersionSensor, table="shop.bronze", version=0)
    assert resumed(waiting, lambda: None)["version"] == 0
    assert not failures


def test_a_sick_checkpoint_is_waited_out(tables, medallion):
    """Until somebody has repaired it; a pipeline without trouble passes at once."""
    tables("bronze")
    waiting = sensor(CheckpointHealthSensor, pipeline="medallion")
    assert waiting.execute({})["flows"][0]["health"] == "healthy"
    offsets = flow_checkpoint(medallion, "bronze", "bronze").epoch_folder(0) / "offsets" / "0"
    text = offsets.read_text()
    offsets.write_text("")
    event = resumed(waiting, lambda: offsets.write_text(text))
    assert event["flows"][0]["health"] == "healthy"


def test_a_version_is_waited_for(tables):
    """Also of a table that is not there yet; the version may come from a template."""
    waiting = sensor(TableVersionSensor, table="shop.bronze", version="1")
    with pytest.raises(TimeoutError):
        resumed(waiting, lambda: tables("bronze"), seconds=0.6)
    assert resumed(waiting, lambda: tables("bronze"))["version"] == 1


def test_changes_are_waited_for(tables):
    """The range begins behind the version; files that were only moved do not count."""
    path = tables("bronze")
    tables("bronze")
    waiting = sensor(ChangeFeedSensor, table="shop.bronze", after_version=1, min_rows=2)
    with pytest.raises(TimeoutError):
        resumed(waiting, lambda: DeltaTable(path).optimize.compact(), seconds=0.6)
    event = resumed(waiting, lambda: tables("bronze", [4, 5]))
    assert (event["start_version"], event["end_version"], event["counts"]["insert"]) == (2, 3, 2)


def test_a_table_made_anew_ends_the_wait_for_its_changes(tables, roots):
    """Its versions mean other rows: the sensor fails instead of waiting for the old number."""
    path = tables("bronze")

    def anew():
        shutil.rmtree(path)
        tables("bronze")

    with pytest.raises(AirflowFailException, match="recreated"):
        resumed(sensor(ChangeFeedSensor, table="shop.bronze", after_version=0), anew)


def test_waiting_in_vain_fails_with_a_sentence(tables):
    """A table that the pipeline does not have can't become fresh: at the start, and while it is waited for."""
    waiting = sensor(FreshnessSensor, pipeline="medallion", dataset="nothing", max_seconds=1)
    with pytest.raises(AirflowFailException, match="no table 'nothing'"):
        waiting.execute({})
    trigger = ConditionTrigger.of(waiting.condition(), POLL)
    event = asyncio.run(anext(trigger.run()))
    with pytest.raises(AirflowFailException, match="no table 'nothing'"):
        waiting.resume({}, event.payload)


@pytest.fixture
def away(monkeypatch):
    """Let the logs of tables be out of reach for the given modules; gives what ends that."""

    def begin(*modules):
        trouble = [True]

        def head(path):
            if trouble:
                raise SourceUnreachable("The disk is away.")
            return table_head(path)

        for module in modules:
            monkeypatch.setattr(f"headwater_airflow.{module}.table_head", head)
        return trouble.clear

    return begin


def test_what_cant_be_looked_at_now_is_waited_for(tables, away):
    """A log that can't be read for a moment neither fails the sensor nor ends it."""
    tables("bronze")
    ends = away("conditions.table_version")
    waiting = sensor(TableVersionSensor, table="shop.bronze", version=0)
    assert resumed(waiting, ends)["version"] == 0


def test_a_table_that_cant_be_looked_at_before_the_wait_is_waited_for(tables, away):
    """The first look of all, which finds out which table it is, may fail as any other."""
    tables("bronze")
    tables("bronze")
    ends = away("conditions.change_feed", "sensors.change_feed")
    waiting = sensor(ChangeFeedSensor, table="shop.bronze", after_version=0)
    assert resumed(waiting, ends)["end_version"] == 1


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (TableVersionSensor, {"table": "shop.bronze", "version": "None"}),
        (ChangeFeedSensor, {"table": "shop.bronze", "after_version": "1.5"}),
        (WatermarkSensor, {"pipeline": "medallion", "reached": "yesterday"}),
    ],
)
def test_a_value_of_a_template_is_refused_by_its_fields_name(tables, kind, arguments):
    """Retries would render the same: the task fails at once, with the field and what it was rendered to."""
    *_, (field, value) = arguments.items()
    with pytest.raises(AirflowFailException, match=f"{field} has to be.*{value}"):
        sensor(kind, **arguments).execute({})


def test_looks_are_off_the_event_loop(tables, monkeypatch):
    """A slow disk does not hold up the triggerer's other triggers."""
    threads = []
    monkeypatch.setattr(
        "headwater_airflow.conditions.table_version.table_head",
        lambda path: threads.append(threading.current_thread()) or table_head(path),
    )
    tables("bronze")
    trigger = ConditionTrigger.of(
        sensor(TableVersionSensor, table="shop.bronze", version=0).condition(), POLL
    )
    asyncio.run(anext(trigger.run()))
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    ("kind", "arguments", "error"),
    [
        (FreshnessSensor, {"pipeline": "p", "max_seconds": -1}, ValueError),
        (WatermarkSensor, {"pipeline": "p"}, ValueError),
        (TableVersionSensor, {"table": "orders", "version": 1}, InvalidName),
        (TableVersionSensor, {"table": "../etc.passwd", "version": 1}, InvalidName),
        (ChangeFeedSensor, {"table": "shop.orders", "after_version": 0, "types": ["x"]}, HeadwaterError),
    ],
)
def test_arguments_without_meaning_are_refused_when_the_dag_is_parsed(kind, arguments, error):
    """Not first when the task runs at night."""
    with pytest.raises(error):
        kind(task_id="wait", **arguments)


def test_a_look_at_fifty_tables_opens_a_few_files_of_each(roots):
    """Three at most, by each of the sensors over pipelines; the triggerer repeats such looks every few seconds."""
    write_observed_pipeline(roots, "wide", many_tables(50), batches=0)
    looks = {
        "freshness": sensor(FreshnessSensor, pipeline="wide", max_seconds=600).condition().look,
        "watermark": sensor(WatermarkSensor, pipeline="wide", max_seconds=600).condition().look,
        "health": sensor(CheckpointHealthSensor, pipeline="wide").condition().look,
        "lag": lambda: read_lag("wide", None, LagLimits(600)),
    }
    for name, look in looks.items():
        work = counted_work(look)
        print(name, work)
        assert max(work.opened, work.listed) < 200
        assert work.calls < 30_000
