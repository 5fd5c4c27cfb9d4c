"""The asset of a table's changes, its watcher, and the task that reads them."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.sdk import DAG
from airflow.sdk import task as python_task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome
from deltalake import DeltaTable, write_deltalake

from headwater.errors import HeadwaterError, InvalidName, UsageError
from headwater_airflow.arrivals import PipelineDataAsset
from headwater_airflow.changes import DeltaTableAsset, changes, position_file
from headwater_airflow.triggers.change_feed import ChangeFeedTrigger

ARRIVED, LOST = AdvanceOutcome(acked=1, failed=0), AdvanceOutcome(acked=0, failed=1)


@pytest.fixture
def commit(roots, monkeypatch):
    """Add rows to the table shop.orders; looks at it are frequent."""
    monkeypatch.setenv("HEADWATER_CHANGE_POLL_SECONDS", "0.05")
    path = roots / "warehouse" / "shop" / "orders"

    def write(*ids):
        write_deltalake(
            path,
            pa.table({"id": list(ids)}),
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )

    write.path = path
    return write


def task_of(function, **settings):
    with DAG("report", schedule=None):
        return changes("shop.orders", **settings)(function)().operator


def run(task, xcom_push=lambda **_: None):
    instance = SimpleNamespace(dag_id="report", task_id=task.task_id, map_index=-1, xcom_push=xcom_push)
    # Airflow makes the operator anew for each attempt.
    task.op_kwargs = dict.fromkeys(task.op_kwargs)
    return task.execute({"ti": instance, "params": {}})


def test_the_task_reads_on_from_where_it_ended_well(commit):
    """All that the table holds, then each range; where nothing has changed, it is skipped."""

    def add_up(changes):
        return changes.start_version, changes.end_version, changes.snapshot, changes.counts.insert

    task = task_of(add_up)
    with pytest.raises(AirflowSkipException, match="No row"):
        run(task)
    commit(1, 2)
    assert run(task) == (0, 0, True, 2)
    with pytest.raises(AirflowSkipException):
        run(task)
    commit(3)
    commit(4)
    assert run(task) == (1, 2, False, 2)


def test_a_failed_task_gets_the_same_range_again_then_the_rest(commit):
    """The position moves only when the function has returned, and the bounds do not move with the table."""
    seen = []

    def note(changes):
        seen.append((changes.start_version, changes.end_version))
        if len(seen) == 2:
            raise ValueError("the first attempt")

    task = task_of(note)
    commit(1)
    run(task)
    commit(2)
    with pytest.raises(ValueError, match="the first attempt"):
        run(task)
    commit(3)
    run(task)
    assert seen == [(0, 0), (1, 1), (1, 1), (2, 2)]
    with pytest.raises(AirflowSkipException):
        run(task)


def test_a_result_that_airflow_cant_store_moves_nothing(commit):
    """Else the retry would be skipped, and with it the tasks behind, which never had the range."""
    stored = []

    def refuse(**_):
        raise TypeError("cannot serialize object of type <class 'pyarrow.lib.Table'>")

    def rows(changes):
        return changes

    task = task_of(rows, form="arrow")
    commit(1)
    for _ in range(2):
        with pytest.raises(TypeError, match="cannot serialize"):
            run(task, refuse)
    run(task, lambda **given: stored.append(given))
    assert [(given["key"], given["value"]["id"].to_pylist()) for given in stored] == [("return_value", [1])]


def test_a_result_of_a_type_that_airflow_refuses_moves_nothing(commit):
    """Airflow refuses it after it was stored: keys that are no texts, and what nothing can be mapped over."""
    results = [{1: "one"}, {"one": 1}]

    def by_key(changes) -> dict:
        return results.pop(0)

    def count(changes):
        return changes.counts.insert

    def show(one):
        return one

    task = task_of(by_key)
    with DAG("report", schedule=None):
        counted = changes("shop.orders")(count)()
        python_task(show).expand(one=counted)
    commit(1)
    with pytest.raises(AirflowFailException, match="keys have to be texts"):
        run(task)
    assert run(task) == {"one": 1}
    for _ in range(2):
        with pytest.raises(AirflowFailException, match="returned int"):
            run(counted.operator)


def test_the_three_forms_are_of_the_same_range(commit):
    """Rows for Arrow, a question for Spark, bounds; `change_range` goes with each."""

    def rows(changes, change_range):
        return sorted(changes["id"].to_pylist()), change_range.end_version

    def question(changes):
        return changes.format, changes.path, dict(changes.options)

    by_arrow, by_spark = task_of(rows, form="arrow"), task_of(question, form="spark", start=0)
    commit(1, 2)
    assert run(by_arrow) == ([1, 2], 0)
    form, path, options = run(by_spark)
    assert (form, path) == ("delta", str(commit.path))
    assert options == {"readChangeFeed": "true", "startingVersion": "0", "endingVersion": "0"}


def test_each_task_has_a_position_of_its_own_unless_it_names_one(commit):
    """Two tasks both see every change; two with the same reader share them."""
    tasks = []
    for name in ("first", "second", "shared_1", "shared_2"):

        def count(changes):
            return changes.counts.insert

        count.__name__ = name
        tasks.append(task_of(count, reader="us" if name.startswith("shared") else None))
    commit(1)
    assert [run(task) for task in tasks[:3]] == [1, 1, 1]
    with pytest.raises(AirflowSkipException):
        run(tasks[3])


def test_a_broken_feed_fails_the_task_for_good(commit, roots):
    """A retry would find the same: the message says what was lost and which file to remove."""
    import shutil

    task = task_of(lambda_free)
    commit(1)
    run(task)
    shutil.rmtree(commit.path)
    commit(2)
    commit(3)
    with pytest.raises(AirflowFailException, match="recreated") as broken:
        run(task)
    position = position_file("shop.orders", "report", "lambda_free")
    assert str(position) in str(broken.value)
    position.unlink()
    assert run(task) == 2


def lambda_free(changes):
    return changes.counts.insert


def test_two_runs_at_once_are_refused_in_a_way_that_a_retry_helps(commit, monkeypatch):
    """The second waits for the first, and may be tried again."""
    from datetime import timedelta

    from headwater.change_feed.consumer import ChangeConsumer

    monkeypatch.setattr("headwater_airflow.changes._WAIT", timedelta(0))
    task = task_of(lambda_free)
    commit(1)
    file = position_file("shop.orders", "report", "lambda_free")
    with ChangeConsumer(file, "shop.orders", commit.path).alone(), pytest.raises(AirflowException) as refused:
        run(task)
    assert not isinstance(refused.value, AirflowFailException)
    assert run(task) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "pandas"}, "no form"),
        ({"reader": "../x"}, "can't name a reader"),
        ({"start": "newest"}, "can't start at 'newest'"),
        ({"start": -1}, "can't start at -1"),
    ],
)
def test_arguments_without_meaning_are_refused(settings, message):
    """When the DAG is parsed."""
    with pytest.raises(UsageError, match=message):
        task_of(lambda_free, **settings)


def test_a_function_without_the_parameter_is_refused():
    """Nothing could be given to it."""
    with pytest.raises(UsageError, match="parameter named `changes`"):
        task_of(lambda: None)


def test_no_name_leads_out_of_storage(roots):
    """Ids of DAGs may be dots; names of readers are plain words."""
    for dag_id in ("..", ".", "a/b", ""):
        with pytest.raises(HeadwaterError):
            position_file("shop.orders", dag_id, "task")


def test_assets_with_other_filters_are_other_assets():
    """Each has one watcher with plain values, and a stable name; no path of a machine is in them."""
    whole = DeltaTableAsset("shop.orders")
    deletes = DeltaTableAsset(
        "shop.orders", types=["delete"], columns=["amount"], min_rows=10, quiet_seconds=30
    )
    assert (whole.name, whole.uri) == ("shop.orders@changes", "x-delta-changes://shop/orders")
    assert deletes.name != whole.name
    assert deletes.uri != whole.uri
    assert deletes == DeltaTableAsset(
        "shop.orders", types=["delete"], columns=["amount"], min_rows=10, quiet_seconds=30
    )
    (watcher,) = deletes.watchers
    path, arguments = watcher.trigger.serialize()
    assert path == "headwater_airflow.triggers.change_feed.ChangeFeedTrigger"
    assert json.loads(json.dumps(arguments)) == {
        "table": "shop.orders",
        "types": ["delete"],
        "columns": ["amount"],
        "min_rows": 10,
        "quiet_seconds": 30.0,
    }


def test_one_table_is_one_asset_however_it_is_spelled():
    """Two names with one address are a conflict to Airflow: the second would be no active asset, and wake nobody."""
    plain, quoted = DeltaTableAsset("shop.orders"), DeltaTableAsset("`shop`.orders")
    assert (quoted.name, quoted.uri) == (plain.name, plain.uri)


def test_close_limits_are_not_one_asset():
    """Else a DAG would be woken by the other's rule."""
    near = [PipelineDataAsset("orders", records=records) for records in (1234567, 1234568)]
    assert len({asset.name for asset in near}) == len({asset.uri for asset in near}) == 2
    still = [DeltaTableAsset("shop.orders", quiet_seconds=seconds) for seconds in (100000.25, 100000.5)]
    assert len({asset.name for asset in still}) == 2


@pytest.mark.parametrize(
    ("table", "settings", "error"),
    [
        ("orders", {}, InvalidName),
        ("shop.orders/../x", {}, InvalidName),
        ("shop.orders", {"types": ["upsert"]}, UsageError),
        ("shop.orders", {"min_rows": 0}, UsageError),
    ],
)
def test_assets_without_meaning_are_refused(table, settings, error):
    """When the DAG is parsed, not when nothing ever wakes it."""
    with pytest.raises(error):
        DeltaTableAsset(table, **settings)


def stream():
    _, arguments = ChangeFeedTrigger("shop.orders").serialize()
    return ChangeFeedTrigger.create_shared_stream_producer(arguments)


def bounds(item):
    raw, feed_range = item
    assert json.loads(json.dumps(raw)) == feed_range.as_dict()
    return feed_range.start_version, feed_range.end_version


def test_an_event_is_told_again_until_airflow_has_stored_it(commit):
    """A triggerer that ends before that tells it anew; one that is told so goes on behind it."""

    async def first(producer):
        return await asyncio.wait_for(anext(producer.open_stream()), 5)

    commit(1)
    assert bounds(asyncio.run(first(stream()))) == (0, 0)
    producer = stream()
    item = asyncio.run(first(producer))
    assert bounds(item) == (0, 0)
    asyncio.run(producer.advance([AdvanceItem(item[1], ARRIVED)]))
    commit(2)
    assert bounds(asyncio.run(first(stream()))) == (1, 1)


def test_an_event_that_airflow_lost_ends_the_stream(commit):
    """Airflow then starts the trigger again, and the event with it."""

    async def lose():
        producer = stream()
        item = await asyncio.wait_for(anext(producer.open_stream()), 5)
        with pytest.raises(RuntimeError, match="did not arrive"):
            await producer.advance([AdvanceItem(item[1], LOST)])
        return bounds(await asyncio.wait_for(anext(stream().open_stream()), 5))

    commit(1)
    assert asyncio.run(lose()) == (0, 0)


def test_commits_during_the_arrival_make_one_event(commit):
    """The next range is made when the last has arrived, however many commits it is."""

    async def follow():
        producer = stream()
        ranges = producer.open_stream()
        first = await asyncio.wait_for(anext(ranges), 5)
        commit(2)
        commit(3)
        waiting = asyncio.ensure_future(anext(ranges))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await producer.advance([AdvanceItem(first[1], ARRIVED)])
        return bounds(await asyncio.wait_for(waiting, 5))

    commit(1)
    assert asyncio.run(follow()) == (1, 2)


def test_a_log_that_cant_be_read_is_looked_at_again(commit):
    """A damaged commit neither ends the watcher nor wakes anybody; when it is whole, the change is told."""

    async def follow():
        producer = stream()
        ranges = producer.open_stream()
        first = await asyncio.wait_for(anext(ranges), 5)
        await producer.advance([AdvanceItem(first[1], ARRIVED)])
        commit(2)
        file = commit.path / "_delta_log" / f"{1:020d}.json"
        whole = file.read_text()
        file.write_text(whole[:50])
        waiting = asyncio.ensure_future(anext(ranges))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        file.write_text(whole)
        return bounds(await asyncio.wait_for(waiting, 5))

    commit(1)
    assert asyncio.run(follow()) == (1, 1)


def test_moved_files_are_no_event(commit):
    """Optimize and vacuum between two changes are in no range's counts."""

    async def follow():
        producer = stream()
        ranges = producer.open_stream()
        first = await asyncio.wait_for(anext(ranges), 5)
        await producer.advance([AdvanceItem(first[1], ARRIVED)])
        DeltaTable(commit.path).optimize.compact()
        waiting = asyncio.ensure_future(anext(ranges))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        commit(3)
        return (await asyncio.wait_for(waiting, 5))[1].counts.insert

    commit(1)
    commit(2)
    assert asyncio.run(follow()) == 1
