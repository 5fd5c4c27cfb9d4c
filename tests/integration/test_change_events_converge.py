"""AUTO CDC: whatever the order, the split and the repetition of events, the table is what the oracle computes from all of them."""

from __future__ import annotations

import importlib
import os
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as LogReader
from pyspark.sql import SparkSession
from tests.change_table import SCHEMA, Changes, flow
from tests.seeds import SEED, SOAK

from headwater.definitions.change_conditions import ChangeFlowChanged
from headwater.errors import FlowFailed
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.apply_changes import check_unchanged, expire
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.auto_cdc.on_driver import door
from headwater_spark.auto_cdc.on_driver import rows as driver_rows


@pytest.fixture
def changes(spark: SparkSession, tmp_path: Path) -> Callable[..., Changes]:
    return lambda schema=SCHEMA, **options: Changes(spark, tmp_path, flow(**options), schema)


def events_of(chance: random.Random, keys: int, each: int) -> list[tuple[Any, ...]]:
    """Random events: deletes, nulls, equal sequences, and values that repeat."""
    return [
        (key, chance.randint(1, 8), chance.choice("UUUD"), chance.choice([None, "a", "b"]), chance.choice([None, "x", "y"]))
        for key in range(keys)
        for _ in range(chance.randint(1, each))
    ]  # fmt: skip


VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "type 1, sequence kept": ({}, {}),
    "type 1, sequence left out": ({"except_columns": ("op", "at")}, {"except_column_list": ("op", "at")}),
    "type 1, nulls ignored": ({"ignore_nulls": True}, {"ignore_null_updates": True}),
    "type 1, nulls of one column ignored": (
        {"ignore_nulls_columns": ("city",), "except_columns": ("op", "at")},
        {"ignore_null_updates": ("city",), "except_column_list": ("op", "at")},
    ),
    "type 1, some columns named": (
        {"columns_to_update": "said", "except_columns": ("op", "at")},
        {"columns_to_update": "said", "except_column_list": ("op", "at")},
    ),
    "type 1, truncated": (
        {"except_columns": ("op", "at"), "apply_as_truncates": "op = 'T'"},
        {"except_column_list": ("op", "at"), "apply_as_truncates": lambda row: row["op"] == "T"},
    ),
    "type 1, nulls ignored, truncated": (
        {"ignore_nulls": True, "apply_as_truncates": "op = 'T'"},
        {"ignore_null_updates": True, "apply_as_truncates": lambda row: row["op"] == "T"},
    ),
    "type 2": ({"history": True, "except_columns": ("op", "at")}, {"except_column_list": ("op", "at")}),
    "type 2, sequence kept": ({"history": True}, {}),
    "type 2, one column tracked": (
        {"history": True, "tracked_columns": ("name",)},
        {"track_history_column_list": ("name",)},
    ),
    "type 2, nulls ignored": (
        {"history": True, "ignore_nulls": True, "except_columns": ("op", "at")},
        {"ignore_null_updates": True, "except_column_list": ("op", "at")},
    ),
    "type 2, some columns named": (
        {"history": True, "columns_to_update": "said", "except_columns": ("op", "at")},
        {"columns_to_update": "said", "except_column_list": ("op", "at")},
    ),
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_order(changes: Callable[..., Changes], monkeypatch: pytest.MonkeyPatch, variant: str):
    """Random events over many keys, shuffled, cut into batches, some sent twice, held on the driver or not: the table equals
    the oracle.
    """
    options, expected = VARIANTS[variant]
    seed = SEED
    chance = random.Random(seed)
    bound = chance.choice([driver_rows.LOCAL_ROWS, driver_rows.LOCAL_ROWS, -1, 500])
    print(f"HEADWATER_SEED={seed}, at most {bound} rows on the driver")
    monkeypatch.setattr(driver_rows, "LOCAL_ROWS", bound)
    sent = events_of(chance, keys=150, each=7)
    if "truncated" in variant:
        sent += [(None, chance.randint(2, 6), "T", None, None) for _ in range(2)]
    names: tuple[str, ...] = ("key", "at", "op", "name", "city")
    if "named" in variant:
        choices = (None, [], ["name"], [None, "city"], ["name", "city", "no column"])
        sent, names = [(*event, chance.choice(choices)) for event in sent], (*names, "said")
    arrivals = [*sent, *chance.sample(sent, 40)]
    chance.shuffle(arrivals)
    table = changes(schema=f"{SCHEMA}, said ARRAY<STRING>" if "named" in variant else SCHEMA, **options)
    cuts = sorted(chance.sample(range(len(arrivals)), 3 if SOAK else 1))
    for start, end in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
        table.apply(arrivals[start:end])
    rows: list[Mapping[str, Any]] = [dict(zip(names, event, strict=True)) for event in sent]
    arguments: dict[str, Any] = {
        "keys": ("key",), "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D", "except_column_list": ("op",),
    } | expected  # fmt: skip
    if options.get("history"):
        wanted = expected_scd2(rows, **arguments)
        got = table.rows('key, "__START_AT"')
    else:
        wanted = expected_scd1(rows, **arguments)
        got = table.rows("key")
    assert got == [tuple(row.values()) for row in wanted]


@pytest.mark.parametrize(
    ("variant", "merge"),
    [("type 1, sequence left out", "merge_latest"), ("type 2, one column tracked", "merge_history")],
)
def test_a_crash_between_the_two_commits(
    changes: Callable[..., Changes], monkeypatch: pytest.MonkeyPatch, variant: str, merge: str
):
    """A batch that reached only the side table is taken back, another flow's goes first, and its repetition ends the same."""
    options, expected = VARIANTS[variant]
    table = changes(**options)
    first = [(1, 10, "U", "a", "x"), (2, 10, "U", "a", "x"), (3, 10, "U", "a", "x")]
    second = [(1, 20, "D", None, None), (2, 20, "U", "a", "y"), (4, 9, "D", None, None)]
    late = [(1, 19, "U", "late", "x"), (4, 7, "U", "late", "x")]
    third = [(1, 15, "U", "b", "y"), (2, 15, "U", "b", "z"), (4, 8, "U", "c", "x"), (3, 20, "D", None, None)]
    table.apply(first)
    with monkeypatch.context() as broken:
        module = importlib.import_module(f"headwater_spark.auto_cdc.{merge}")
        broken.setattr(module, "_merge", crash)
        broken.setattr(door, "rewrite", crash)
        with pytest.raises(RuntimeError, match="killed here"):
            table.apply(second)
    table.apply(third, flow="other")
    # Under the number that it had, as Spark repeats it: Delta must not take it for done.
    table.apply(second, batch=2)
    table.apply(second, batch=2)
    table.apply(late)
    rows = [
        dict(zip(("key", "at", "op", "name", "city"), event, strict=True))
        for event in (*first, *second, *third, *late)
    ]
    arguments: dict[str, Any] = {
        "keys": ("key",), "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D", "except_column_list": ("op",),
    } | expected  # fmt: skip
    oracle = expected_scd2 if options.get("history") else expected_scd1
    order = 'key, "__START_AT"' if options.get("history") else "key"
    assert table.rows(order) == [tuple(row.values()) for row in oracle(rows, **arguments)]


def crash(*_: object) -> None:
    """What a SIGKILL leaves: nothing after this point happened."""
    message = "killed here"
    raise RuntimeError(message)


@pytest.mark.parametrize("variant", ["type 1, sequence left out", "type 2"])
def test_a_delete_that_finds_nothing(changes: Callable[..., Changes], variant: str):
    """A batch that changes no row of the table is remembered all the same: what is older stays out, or ends there."""
    table = changes(**VARIANTS[variant][0])
    table.apply([(1, 20, "D", None, None)])
    table.apply([(1, 10, "U", "a", "x")])
    assert table.rows() == ([(1, "a", "x", 10, 20)] if "2" in variant else [])


def test_what_is_forgotten_in_time(changes: Callable[..., Changes]):
    """A tombstone keeps an older event out until the target's retention has passed, and no longer."""
    table = changes(except_columns=("op", "at"))
    table.apply([(1, 10, "U", "a", "x"), (1, 20, "D", None, None), (2, 10, "U", "a", "x")])
    table.apply([(1, 15, "U", "late", "x")])
    assert table.rows() == [(2, "a", "x")]
    expire(table.spark, table.columns, replace(table.target, retention=timedelta(hours=1)))
    table.apply([(1, 16, "U", "late", "x")])
    assert table.rows() == [(2, "a", "x")]
    expire(table.spark, table.columns, replace(table.target, retention=timedelta(0)))
    table.apply([(1, 17, "U", "late", "x"), (2, 5, "U", "late", "x")])
    assert table.rows() == [(1, "late", "x"), (2, "a", "x")]


def test_a_table_that_forgets_its_batches(changes: Callable[..., Changes]):
    """What a committed batch remembered stays remembered, also where the table's own id of the batch has expired meanwhile."""
    table = changes(except_columns=("op", "at"))
    path, name = table.target.path, "delta.setTransactionRetentionDuration"
    table.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{name}' = 'interval 1 days')")
    table.apply([(1, 20, "D", None, None), (2, 10, "U", "a", "x")])
    then = time.time() - 3 * 86_400
    for commit in (path / "_delta_log").glob("*.json"):
        text = re.sub(r'"(lastUpdated|timestamp)":[0-9]+', rf'"\1":{then * 1000:.0f}', commit.read_text())
        commit.write_text(text)
        os.utime(commit, (then, then))
    assert LogReader(str(path)).transaction_version("tests.flow@0") is None
    table.apply([(1, 15, "U", "late", "x"), (2, 9, "U", "late", "x")])
    assert table.rows() == [(2, "a", "x")]


def test_columns_come_and_keys_stay(changes: Callable[..., Changes]):
    """A column that the source gains is added to the table; other keys, or another type, are refused."""
    table = changes()
    check_unchanged(table.columns, table.target, None)
    table.apply([(1, 10, "U", "a", "x")])
    empty = table.spark.createDataFrame([], f"{SCHEMA}, age INT")
    table.schema, table.columns = f"{SCHEMA}, age INT", change_columns(flow(), empty, None)
    check_unchanged(table.columns, table.target, None)
    table.apply([(2, 10, "U", "b", "y", 7)])
    table.apply([(1, 10, "U", "a", "x", 8), (1, 9, "U", "a", "x", 9)])
    assert table.rows() == [(1, 10, "a", "x", 8), (2, 10, "b", "y", 7)]
    for changed in (flow(keys=("key", "name")), flow(sequence_by="cast(at as string)"), flow(history=True)):
        with pytest.raises(ChangeFlowChanged, match="changed from"):
            check_unchanged(change_columns(changed, empty, None), table.target, None)
    check_unchanged(change_columns(flow(keys=("`KEY`",)), empty, None), table.target, None)
    retyped = table.spark.createDataFrame([], "key INT, at INT, op STRING, name STRING, city INT")
    table.schema, table.columns = retyped.schema, change_columns(flow(), retyped, None)
    with pytest.raises(FlowFailed, match="'city' is string in the table, and now comes as int"):
        table.apply([(3, 10, "U", "a", 1)])
    assert len(table.rows()) == 2


def test_a_history_whose_events_come_to_name_columns(changes: Callable[..., Changes]):
    """What is remembered of events says which columns they named: with and without columns_to_update are two histories."""
    schema = f"{SCHEMA}, said ARRAY<STRING>"
    table = changes(schema=schema, history=True, except_columns=("op", "said"))
    check_unchanged(table.columns, table.target, None)
    empty = table.spark.createDataFrame([], schema)
    named = change_columns(flow(history=True, columns_to_update="said"), empty, None)
    with pytest.raises(ChangeFlowChanged, match="columns_to_update"):
        check_unchanged(named, table.target, None)


@pytest.mark.parametrize("history", [False, True])
def test_fields_that_structs_gain(changes: Callable[..., Changes], history: bool):
    """A field that a struct gains is NULL in older rows, and compared as such; one of another type is refused."""
    start = "key INT, at INT, op STRING, who STRUCT<name: STRING"
    table = changes(schema=f"{start}>", history=history)

    def reads(schema: str) -> None:
        table.schema = schema
        table.columns = change_columns(flow(history=history), table.spark.createDataFrame([], schema), None)

    table.apply([(1, 10, "U", ("a",))])
    reads(f"{start}, age: INT>")
    table.apply([(1, 10, "U", ("a", 3)), (1, 5, "U", ("z", None)), (2, 5, "U", ("b", 4))])
    now, then, other = {"name": "a", "age": 3}, {"name": "z", "age": None}, {"name": "b", "age": 4}
    if history:
        assert table.rows('key, "__START_AT"') == [
            (1, 5, then, 5, 10),
            (1, 10, now, 10, None),
            (2, 5, other, 5, None),
        ]
    else:
        assert table.rows("key") == [(1, 10, now), (2, 5, other)]
    reads(f"{start}, age: STRING>")
    with pytest.raises(
        FlowFailed, match="'who' is struct<name:string,age:int> in the table, and now comes as"
    ):
        table.apply([(3, 5, "U", ("b", "4"))])


@pytest.mark.parametrize("history", [False, True])
def test_names_with_backticks(spark: SparkSession, tmp_path: Path, history: bool):
    """Columns may have any characters in their names that a Delta table takes, keys and the sequence too."""
    schema = "`k``ey` INT, `a``t` INT, op STRING, `na.me``` STRING"
    options = {"keys": ("k`ey",), "sequence_by": "`a``t`", "history": history}
    table = Changes(spark, tmp_path, flow(**options), schema)
    table.apply([(1, 10, "U", "a"), (2, 10, "U", "b")])
    table.apply([(1, 5, "U", "late"), (2, 20, "D", None), (1, 30, "U", "c")])
    table.apply([(2, 15, "U", "late"), (1, 40, "U", "d")])
    rows = [
        tuple(row)
        for row in spark.read.format("delta")
        .load(str(table.target.path))
        .orderBy("`k``ey`", "`a``t`")
        .collect()
    ]
    if history:
        assert [row[:3] for row in rows] == [
            (1, 5, "late"),
            (1, 10, "a"),
            (1, 30, "c"),
            (1, 40, "d"),
            (2, 10, "b"),
            (2, 15, "late"),
        ]
        assert rows[-1][3:] == (15, 20)
    else:
        assert rows == [(1, 40, "d")]


def test_a_sequence_that_is_kept_from_now_on(changes: Callable[..., Changes]):
    """What came before a table kept its sequence still keeps older events out, and so does what came while it did."""
    table = changes(except_columns=("op", "at"))
    empty = table.spark.createDataFrame([], SCHEMA)
    check_unchanged(table.columns, table.target, None)
    table.apply([(1, 10, "U", "b", "x"), (2, 10, "U", "a", "x")])
    table.columns = change_columns(flow(), empty, None)
    check_unchanged(table.columns, table.target, None)
    table.apply([(1, 5, "U", "late", "x"), (2, 20, "U", "b", "y")])
    table.apply([(1, 10, "U", "a", "z"), (2, 15, "U", "late", "y")])
    assert table.rows() == [(1, "b", "x", None), (2, "b", "y", 20)]
    table.apply([(1, 11, "U", "c", "x")])
    assert table.rows() == [(1, "c", "x", 11), (2, "b", "y", 20)]
    with pytest.raises(ChangeFlowChanged, match="a NULL leaves"):
        check_unchanged(change_columns(flow(ignore_nulls=True), empty, None), table.target, None)
    # Another expression of the same type; the driver dies before it has noted that.
    table.columns = change_columns(flow(sequence_by="at + 0"), empty, None)
    with pytest.raises(ChangeFlowChanged, match="keeps the column of sequence_by"):
        check_unchanged(table.columns, table.target, None)
    made_with = table.target.memory / "made_with.json"
    before = made_with.read_text()
    check_unchanged(table.columns, table.target, None, spark=table.spark)
    made_with.write_text(before)
    check_unchanged(table.columns, table.target, None, spark=table.spark)
    table.apply([(1, 10, "U", "late", "x"), (2, 15, "U", "late", "y"), (1, 9, "D", None, None)])
    assert table.rows() == [(1, "c", "x", 11), (2, "b", "y", 20)]
    # And a table without the column at all.
    table.columns = change_columns(flow(sequence_by="at - 0", except_columns=("op", "at")), empty, None)
    check_unchanged(table.columns, table.target, None, spark=table.spark)
    table.apply([(1, 11, "D", None, None), (2, 21, "U", "e", "y"), (2, 20, "U", "late", "y")])
    table.apply([(1, 10, "U", "late", "x"), (3, 1, "U", "new", "z")])
    assert [row[:2] for row in table.rows()] == [(2, "e"), (3, "new")]


def test_what_something_else_wrote(changes: Callable[..., Changes]):
    """A row of another writer counts with the sequence that it has; without one every event is newer than it."""
    table = changes()
    table.apply([(1, 10, "U", "a", "x"), (2, 10, "U", "a", "x")])
    others = [(3, 20, "other", None), (4, None, "other", None)]
    frame = table.spark.createDataFrame(others, "key INT, at INT, name STRING, city STRING")
    frame.write.format("delta").mode("append").save(str(table.target.path))
    DeltaTable.forPath(table.spark, str(table.target.path)).delete("key = 2")
    table.apply([(key, 15, "U", "b", "y") for key in (2, 3, 4)])
    assert table.rows() == [(1, 10, "a", "x"), (2, 15, "b", "y"), (3, 20, "other", None), (4, 15, "b", "y")]
    # All keys have rows by now: the merge can do without inserts.
    table.apply([(1, 30, "U", "c", "z"), (3, 19, "U", "late", "z"), (4, 30, "D", None, None)])
    assert table.rows() == [(1, 30, "c", "z"), (2, 15, "b", "y"), (3, 20, "other", None)]
