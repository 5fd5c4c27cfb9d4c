"""Runs that begin when data arrives: what the spec says, and what a triggerer does with many watches."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome
from tests.dags.pipeline_folder import write_files_pipeline

from headwater.errors import InvalidName, InvalidSpec, SourceUnreachable, UsageError
from headwater_airflow.arrivals import PipelineDataAsset
from headwater_airflow.dag import PipelineDag
from headwater_airflow.triggers import watching
from headwater_airflow.triggers.data_arrival import DataArrivalTrigger
from headwater_airflow.triggers.threads import THREADS

STORED = AdvanceOutcome(acked=1, failed=0)
MANY = 200


def stream_of(trigger):
    """The stream as the triggerer makes it of what the database has."""
    return type(trigger).create_shared_stream_producer(json.loads(json.dumps(trigger.serialize()[1])))


def test_the_spec_schedules_the_dag_on_its_data(roots):
    """`schedule: on_data` is an asset whose watcher has plain values only: no place of this machine, and no secret."""
    airflow = "{schedule: on_data, on_data: {quiet: 1 minute, files: 10, wait: 2 hours}}"
    write_files_pipeline(roots, "p", airflow)
    text = json.dumps(DagSerialization.to_dict(PipelineDag("p"))["dag"]["timetable"])
    (asset,) = PipelineDag("p").timetable.asset_condition.objects
    assert asset.uri == "x-headwater-data://p/?quiet_seconds=60&files=10&wait_seconds=7200"
    path, arguments = asset.watchers[0].trigger.serialize()
    assert path == "headwater_airflow.triggers.data_arrival.DataArrivalTrigger"
    assert arguments == {
        **dict.fromkeys(("records", "versions"), 1),
        "pipeline": "p",
        "quiet_seconds": 60.0,
        "files": 10,
        "wait_seconds": 7200.0,
    }
    assert path in text
    assert str(roots) not in text


@pytest.mark.parametrize(
    "airflow",
    [
        "{on_data: {files: 2}}",
        "{schedule: '@daily', on_data: {quiet: 1 minute}}",
        "{schedule: on_data, on_data: {files: 0}}",
        "{schedule: on_data, on_data: {quiet: 2 hours, wait: 1 hour}}",
        "{schedule: on_data, on_data: {quiet: -1 second}}",
        "{schedule: on_data, on_data: {quiet: soon}}",
        "{schedule: on_data, on_data: {file: 3}}",
    ],
)
def test_what_the_spec_can_not_mean(roots, airflow):
    """Refused with its key, before there is a DAG."""
    write_files_pipeline(roots, "p")
    (roots / "pipelines" / "p" / "pipeline.yml").write_text(f"name: p\nairflow: {airflow}\n")
    with pytest.raises(InvalidSpec, match="on_data"):
        PipelineDag("p")


def test_what_the_asset_can_not_mean():
    """Names that lead elsewhere and rules without a meaning."""
    with pytest.raises(InvalidName):
        PipelineDataAsset("../p")
    with pytest.raises(UsageError):
        PipelineDataAsset("p", files=0)
    assert PipelineDataAsset("p").uri != PipelineDataAsset("p", files=2).uri


def test_two_hundred_watches_each_announce_once_in_one_loop(roots, monkeypatch):
    """Files land for all: each is announced once, by its own pipeline; new watches after a restart announce none of them again."""
    monkeypatch.setenv("HEADWATER_DATA_POLL_SECONDS", "0.5")
    landings = {name: write_files_pipeline(roots, name) for name in (f"p{n:03}" for n in range(MANY))}

    async def watch(seconds, until=None):
        told = []

        async def one(name):
            stream = stream_of(DataArrivalTrigger(name))
            async for payload, news in stream.open_stream():
                told.append((payload["pipeline"], payload["sources"][0]["amount"]))
                await stream.advance([AdvanceItem(news, STORED)])

        tasks = [asyncio.create_task(one(name)) for name in landings]
        for _ in range(int(seconds * 10)):
            if until is not None and len(told) >= until:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return sorted(told)

    for folder in landings.values():
        (folder / "a.json").write_text("{}")
    assert asyncio.run(watch(60, MANY)) == [(name, 1) for name in landings]
    assert asyncio.run(watch(1)) == []


def test_looks_that_block_hold_up_nothing_but_themselves(roots, monkeypatch):
    """Every look waits for a dead broker: the loop goes on, and so few threads wait that a triggerer can have hundreds of watches."""
    monkeypatch.setenv("HEADWATER_DATA_POLL_SECONDS", "0.05")
    release, inside = threading.Event(), []

    def blocked(self):
        inside.append(threading.current_thread().name)
        release.wait(60)

    monkeypatch.setattr(watching.WatchStream, "_look", blocked)

    async def beats():
        tasks = [
            asyncio.create_task(anext(stream_of(DataArrivalTrigger(f"p{n}")).open_stream()))
            for n in range(MANY)
        ]
        count = 0
        while len(inside) < THREADS or count < 20:
            await asyncio.sleep(0.01)
            count += 1
        await asyncio.sleep(0.2)
        busy = len(inside)
        release.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return busy

    assert asyncio.run(asyncio.wait_for(beats(), 60)) == THREADS
    assert all(name.startswith("headwater-watch") for name in inside)


def test_trouble_is_logged_once_and_looked_at_more_rarely(roots, monkeypatch):
    """A watch survives whatever a look raises, says each reason once, waits longer and longer, and says when it is over."""
    landing = write_files_pipeline(roots, "p")
    troubles = [
        SourceUnreachable("Kafka is away."),
        SourceUnreachable("Kafka is away."),
        RuntimeError("boom"),
        OSError("disk"),
    ]
    stream = stream_of(DataArrivalTrigger("p"))
    real, lines, pauses = stream._look, [], []

    def look():
        if troubles:
            raise troubles.pop(0)
        return real()

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(stream, "_look", look)
    monkeypatch.setattr(watching.asyncio, "sleep", sleep)
    for level in ("warning", "info"):
        monkeypatch.setattr(
            type(stream.trigger.log),
            level,
            lambda self, text, *values: lines.append(text % values),
            raising=False,
        )
    (landing / "a.json").write_text("{}")
    payload, _ = asyncio.run(asyncio.wait_for(anext(stream.open_stream()), 30))
    assert payload["sources"][0]["amount"] == 1
    assert [line.partition(": ")[2][:30] for line in lines[:3]] == [
        "[SOURCE_UNREACHABLE] Kafka is a"[:30],
        "RuntimeError: boom"[:30],
        "disk",
    ]
    assert lines[3].endswith("can be looked at again.")
    assert pauses[1:] == [20, 40, 80, 160]


def test_an_event_that_was_not_stored_is_emitted_again(roots, monkeypatch):
    """Airflow reports that an event did not arrive: the stream ends, and the next one has it."""
    monkeypatch.setenv("HEADWATER_DATA_POLL_SECONDS", "0.05")
    (write_files_pipeline(roots, "p") / "a.json").write_text("{}")

    async def first(outcome):
        stream = stream_of(DataArrivalTrigger("p"))
        payload, news = await anext(stream.open_stream())
        await stream.advance([AdvanceItem(news, outcome)])
        return payload

    with pytest.raises(RuntimeError):
        asyncio.run(first(AdvanceOutcome(acked=0, failed=1)))
    assert asyncio.run(first(STORED))["pipeline"] == "p"


def test_a_stream_knows_the_trigger_that_it_is_opened_for(roots):
    """Airflow makes a stream of the trigger's arguments: its id, which a paused DAG's next watcher does not share, is known all the same."""
    write_files_pipeline(roots, "p")
    for number in (7, 8):
        trigger = DataArrivalTrigger("p")
        trigger.trigger_id = number
        trigger.shared_stream_key()
        assert stream_of(trigger).trigger.open_watch().watcher == number
