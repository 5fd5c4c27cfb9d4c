"""How a task reads the changes of a table: what it refuses, where it keeps its position, and when that moves."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.counts import ChangeCounts
from headwater.errors import ChangeFeedBroken, HeadwaterError, UpdateInProgress, UsageError
from headwater_airflow import changes as module
from headwater_airflow.changes import ChangesOperator, DeltaTableAsset, position_file


def add_up(changes: Any, change_range: Any = None) -> Any:
    """What the task does."""
    return {"versions": changes.end_version, "same": change_range is changes}


def without_changes(rows: Any) -> None:
    """A function that can't be given any."""


@pytest.mark.parametrize(
    "more",
    [
        {"python_callable": without_changes},
        {"form": "pandas"},
        {"start": "yesterday"},
        {"start": -1},
        {"start": True},
        {"reader": "a/b"},
        {"table": "orders"},
    ],
)
def test_what_has_no_meaning_is_refused_when_the_dag_is_made(more: dict[str, Any]):
    """Not when the task runs at night."""
    fields = {"task_id": "add_up", "table": "shop.orders", "python_callable": add_up, **more}
    with pytest.raises(HeadwaterError):
        ChangesOperator(**fields)


@pytest.mark.parametrize("start", ["snapshot", "latest", 0, 7])
def test_where_a_reader_may_begin(start: Any):
    """With all rows, with what comes, or at a version, the first one, too; one task at a time reads under one position."""
    task = ChangesOperator(task_id="t", table="shop.orders", python_callable=add_up, start=start)
    assert (task.start, task.max_active_tis_per_dag) == (start, 1)


def test_each_task_has_a_position_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """Mapped tasks have one each; a reader with a name keeps its position wherever it runs."""
    monkeypatch.setattr(module, "storage_folder", lambda: Path("/s"))
    root = "/s/change_feeds/readers"
    assert str(position_file("shop.orders", "d", "t")) == f"{root}/tasks/d/t.shop.orders.json"
    assert str(position_file("shop.orders", "d", "t", 0)) == f"{root}/tasks/d/t[0].shop.orders.json"
    assert str(position_file("shop.orders", "d", "t", reader="r")) == f"{root}/named/r.shop.orders.json"
    with pytest.raises(UsageError):
        position_file("shop.orders", "d", "../t")


def test_filters_are_part_of_an_assets_address():
    """Two assets that wake for other changes have other names; what is the default is not spelled out."""
    assert DeltaTableAsset("shop.orders").uri == "x-delta-changes://shop/orders"
    assert DeltaTableAsset("shop.orders", min_rows=1).name == "shop.orders@changes"
    assert DeltaTableAsset("shop.orders", min_rows=2).name == "shop.orders@changes?min_rows=2"
    query = "types=insert%2Bdelete&columns=a&quiet_seconds=0.5"
    asset = DeltaTableAsset("shop.orders", types=["insert", "delete"], columns=["a"], quiet_seconds=0.5)
    assert asset.uri == f"x-delta-changes://shop/orders?{query}"


class Reader:
    """A position with ranges after it."""

    def __init__(self, *ranges: Any, begun: bool = False) -> None:
        self.ranges, self.begun, self.finished = list(ranges), begun, list[Any]()
        self.busy = False

    def alone(self, _: Any) -> Any:
        if self.busy:
            raise UpdateInProgress("Another task is at work.")
        return nullcontext()

    def has_begun(self) -> bool:
        return self.begun

    def next_range(self) -> Any:
        one = self.ranges.pop(0) if self.ranges else None
        if isinstance(one, Exception):
            raise one
        return one

    def done(self, worked: Any) -> None:
        self.finished.append(worked.end_version)


def versions(last: int) -> ChangeRange:
    """A range up to a version."""
    return ChangeRange("shop.orders", "id", last, last, counts=ChangeCounts(insert=1))


def read(monkeypatch: pytest.MonkeyPatch, reader: Reader, function: Any = add_up, **more: Any) -> Any:
    """The result of the task."""
    task = ChangesOperator(task_id="t", table="shop.orders", python_callable=function, **more)
    monkeypatch.setattr(task, "_consumer", lambda _: reader)
    monkeypatch.setattr(task, "iter_mapped_dependants", lambda: iter(()))
    pushes: list[Any] = []
    instance = SimpleNamespace(
        dag_id="d", task_id="t", map_index=-1, xcom_push=lambda key, value: pushes.append((value, len(reader.finished)))
    )  # fmt: skip
    return task.execute({"ti": instance}), pushes


def test_one_range_a_run(monkeypatch: pytest.MonkeyPatch):
    """The position moves after the result is stored; what comes behind it is the next run's."""
    reader = Reader(versions(3), versions(4))
    result, pushes = read(monkeypatch, reader)
    assert result == {"versions": 3, "same": True}
    assert (pushes, reader.finished) == ([(result, 0)], [3])


def test_a_range_that_was_begun_is_followed_by_the_rest(monkeypatch: pytest.MonkeyPatch):
    """The run that was killed in between does not cost those who wait another one."""
    reader = Reader(versions(3), versions(4), versions(5), begun=True)
    assert read(monkeypatch, reader)[0]["versions"] == 4
    assert reader.finished == [3, 4]


def test_nothing_new_skips(monkeypatch: pytest.MonkeyPatch):
    """No row has changed since the task last ended well."""
    with pytest.raises(AirflowSkipException):
        read(monkeypatch, Reader())


@pytest.mark.parametrize("error", [ChangeFeedBroken("made anew"), UpdateInProgress("at work")])
def test_what_is_tried_again(monkeypatch: pytest.MonkeyPatch, error: HeadwaterError):
    """A table that was made anew needs a person; another task ends by itself. The position stays."""
    reader = Reader(error)
    with pytest.raises(AirflowException) as raised:
        read(monkeypatch, reader)
    assert isinstance(raised.value, AirflowFailException) is not error.transient
    assert reader.finished == []


def test_a_result_that_airflow_would_refuse_moves_no_position(monkeypatch: pytest.MonkeyPatch):
    """Its range comes again; keys that are no texts can't be several results."""
    reader = Reader(versions(3))
    with pytest.raises(AirflowFailException, match="Its range comes again"):
        read(monkeypatch, reader, lambda changes: {changes.end_version: 1}, multiple_outputs=True)
    assert reader.finished == []


@pytest.mark.parametrize(
    ("result", "mapped"),
    [([1], True), ((1,), True), ({"a": 1}, True), ("text", False), (b"x", False), (bytearray(b"x"), False), (7, False), (None, False)],
)  # fmt: skip
def test_what_tasks_can_be_mapped_over(result: object, mapped: bool):
    """Lists and dicts, as Airflow has it; a text is one value."""
    assert module._can_be_mapped_over(result) is mapped
