"""The events of a batch: which are refused, and which of them are left to decide."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import EVENT, Merged, columns_of, event, on_plain_rows
from tests.unit.headwater_spark.plain_columns import col, lit
from tests.unit.headwater_spark.plain_rows import Frame
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater.definitions.change_conditions import NullKey, NullSequence
from headwater_spark.auto_cdc import change_events as module
from headwater_spark.auto_cdc.change_columns import DELETE, SEQUENCE, TRUNCATE
from headwater_spark.auto_cdc.change_events import change_batch
from headwater_spark.auto_cdc.merge_history import merge_history
from headwater_spark.auto_cdc.merge_latest import merge_latest
from headwater_spark.auto_cdc.on_driver.rows import Rows

FOLDER = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("history", [False, True])
def test_a_key_that_its_partition_does_not_keep(text: str, history: bool):
    """Delta would store it as NULL, and never find it again: it fails its batch, where the target is partitioned by it only."""
    module = merge_history if history else merge_latest
    keys = {"keys": ("key", "name"), "history": history}
    target = Merged(columns_of(**keys, partitions=("name",)), module)
    target.apply([event(1, 1, "U", "a", None)])
    before = target.rows()
    with pytest.raises(NullKey, match=f"or '' or '{FOLDER}' in name, by which the target is partitioned"):
        target.apply([event(1, 2, "U", text, None)])
    assert target.rows() == before
    target = Merged(columns_of(**keys), module)
    target.apply([event(1, 2, "U", text, None)])
    assert [row["name"] for row in target.rows()] == [text]


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"key": None}, NullKey), ({"at": None}, NullSequence), ({"key": None, "at": None}, NullSequence)],
)
@pytest.mark.parametrize("history", [False, True])
def test_events_that_are_about_no_row(changes: dict[str, Any], error: type[Exception], history: bool):
    """One without a key, or without a sequence, fails its batch: nothing of it is written or remembered."""
    target = Merged(columns_of(history=history), merge_history if history else merge_latest)
    target.apply([event(1, 1, "U", "a", None)])
    before = (target.rows(), target.side.rows)
    with pytest.raises(error):
        target.apply([event(1, 2, "U", "b", None), {**event(2, 3, "U", "c", None), **changes}])
    assert (target.rows(), target.side.rows) == before


@pytest.mark.parametrize(("history", "left"), [(True, [1, 2, 3]), (False, [2, 3])])
def test_events_on_the_driver(monkeypatch: pytest.MonkeyPatch, history: bool, left: list[int]):
    """Of a history each moment of a key counts; else only the last one."""
    table = pa.table({"key": [1, 1, 2], SEQUENCE: [1, 2, 3], DELETE: [False] * 3, TRUNCATE: [False] * 3})
    winner = table.slice(1, 1)
    frame: Any = SimpleNamespace(sparkSession=None, schema=None, drop=lambda _: SimpleNamespace(schema=None))
    monkeypatch.setattr(module, "local_frame", lambda *_: "a frame")
    monkeypatch.setattr(module, "_reduced", lambda *_: SimpleNamespace(select=lambda *_: "winners"))
    monkeypatch.setattr(module, "on_driver", lambda _: Rows(frame, winner))
    reduced, ties = module._reduced_on_driver(Rows(frame, table), columns_of(history=history))
    assert sorted(reduced.table[SEQUENCE].to_pylist()) == left
    assert ties == 0


@pytest.mark.parametrize(
    ("changes", "by_arrow"),
    [
        ({}, True),
        ({"system": col("known"), "system_type": T.LongType()}, False),
        ({"ignored": ("name",)}, False),
    ],
)
def test_events_that_arrow_reduces(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], by_arrow: bool):
    """Not those with a second sequence, nor where each of a key's events may still matter."""
    reduced: list[Any] = []

    def on_arrow(events: Any, _: Any) -> Any:
        reduced.append(events)
        raise NotImplementedError

    monkeypatch.setattr(module, "local_if_small", lambda rows, _: Rows(rows, "on the driver"))
    monkeypatch.setattr(module, "arrow_can_reduce", lambda _: True)
    monkeypatch.setattr(module, "_reduced_on_driver", on_arrow)
    session = SimpleNamespace(conf=Conf())
    frame: Any = Frame([event(1, 1, "U", "a", None)], EVENT, session=session)
    columns = columns_of(history="system" in changes, **changes)
    if by_arrow:
        with pytest.raises(NotImplementedError), module.change_batch(frame, columns, None):
            pass
    else:
        with module.change_batch(frame, columns, None) as batch:
            assert batch.remaining == 1
    assert bool(reduced) is by_arrow


def test_an_event_that_truncates_deletes_no_key():
    """Whatever the flow's condition for deletes says of it, it is counted as a truncate alone."""
    both = columns_of(truncate=col("op") == lit("T"), delete=col("op") != lit("U"))
    sent = [event(1, 1, "U", "a", None), event(2, 2, "D", None, None), event(3, 3, "T", None, None)]
    frame: Any = Frame(sent, EVENT, session=SimpleNamespace(conf=Conf()))
    with change_batch(frame, both, None, fast_path=False) as batch:
        assert (batch.received, batch.remaining, batch.deletes) == (3, 2, 1)


@pytest.mark.parametrize(("history", "moments", "ties"), [
    (False, [3, 3, 4], 1), (True, [3, 3, 4], 1), (False, [3, 4], 0), (True, [3, 4], 0), (False, [3, 3, 3], 2), (True, [3, 3, 3], 2),
])  # fmt: skip
def test_events_with_the_sequence_of_another(history: bool, moments: list[int], ties: int):
    """They are counted by key: which of them counts, their values decide."""
    rows = [event(1, at, "U", str(number), None) for number, at in enumerate(moments)]
    rows.append(event(2, 3, "U", "a", None))
    types: dict[str, T.DataType] = {"name": T.StringType(), "city": T.StringType(), "op": T.StringType()}
    frame: Any = Frame(rows, EVENT, types=types, session=SimpleNamespace(conf=Conf()))
    with change_batch(frame, columns_of(history=history), "main.py:1", fast_path=False) as batch:
        assert (batch.received, batch.ties) == (len(rows), ties)
