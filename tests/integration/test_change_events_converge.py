"""AUTO CDC: whatever the order, the split and the repetition of events, the table is what the oracle computes from all of them."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as LogReader
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.change_table import SCHEMA, Changes, flow
from tests.integration.change_cases import HISTORY, LATEST, MOVES, PATCHES, case_events, case_results
from tests.seeds import SEED, SOAK

from headwater.definitions.change_conditions import ChangeFlowChanged
from headwater.delta_log.commits import newest_version
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, check_unchanged, expire
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.auto_cdc.on_driver import door
from headwater_spark.auto_cdc.on_driver import rows as driver_rows

Event = tuple[Any, ...]
LOCAL, SPARK = driver_rows.LOCAL_ROWS, -1
WITHOUT_SEQUENCE = {"except_columns": ("op", "at")}


@dataclass(frozen=True)
class Variant:
    """A kind of flow, as its own options and as the oracle's.

    ``limits``: for each batch, up to how many events come to the driver. ``crash``: where its last batch is killed between
    the two commits.
    """

    options: dict[str, Any] = field(default_factory=dict)
    oracle: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, str] = field(default_factory=dict)
    sequence: str = "INT"
    limits: tuple[int, ...] = (LOCAL, SPARK)
    crash: str | None = None
    named: bool = False
    truncated: bool = False
    delete_alone: bool = False

    @property
    def history(self) -> bool:
        """Whether it is type 2."""
        return "history" in self.options

    @property
    def schema(self) -> str:
        """The columns of its events."""
        return SCHEMA.replace("at INT", f"at {self.sequence}") + (
            ", said ARRAY<STRING>" if self.named else ""
        )


# How many batches a case has at most.
LONGEST = 3
TRUNCATES = {"apply_as_truncates": "op = 'T'"}
TRUNCATED = {"apply_as_truncates": lambda row: row["op"] == "T"}
LEFT_OUT = {"except_column_list": ("op", "at")}
# A flow of each way in which events are decided: which of them counts is tested event by event, over plain rows, beside the code
# (tests/unit/headwater_spark/auto_cdc). Here Spark and the driver have to come to the same. Truncates of whole rows, and tracked
# columns by Spark's own way, are in test_changes_are_merged.py.
VARIANTS = {
    "type 1, sequence kept": Variant(cases=LATEST, sequence="TINYINT"),
    # In its second batch the events come to the driver once they are reduced.
    "type 1, sequence left out": Variant(
        WITHOUT_SEQUENCE, LEFT_OUT, LATEST, limits=(LOCAL, 100, LOCAL), crash="merge_latest", delete_alone=True
    ),
    "type 1, some columns named": Variant(
        {"columns_to_update": "said", **WITHOUT_SEQUENCE}, {"columns_to_update": "said", **LEFT_OUT}, named=True
    ),
    "type 1, nulls of one column ignored, truncated": Variant(
        {"ignore_nulls_columns": ("city",), **TRUNCATES}, {"ignore_null_updates": ("city",), **TRUNCATED}, truncated=True
    ),
    "type 2": Variant({"history": True, **WITHOUT_SEQUENCE}, LEFT_OUT, HISTORY, "SMALLINT", (LOCAL,) * 3, crash="merge_history"),
    "type 2, nulls ignored": Variant(
        {"history": True, "ignore_nulls": True, **WITHOUT_SEQUENCE}, {"ignore_null_updates": True, **LEFT_OUT}, PATCHES, limits=(LOCAL, LOCAL)
    ),
    # The cases of a history have names alone, and come to the same.
    "type 2, one column tracked, some named": Variant(
        {"history": True, "tracked_columns": ("name",), "columns_to_update": "said"},
        {"track_history_column_list": ("name",), "columns_to_update": "said"},
        {**HISTORY, **MOVES},
        "BIGINT",
        named=True,
    ),
}  # fmt: skip
# What flows with a crash also have, by batch: the third reaches only the side table, is taken back, and another flow's goes
# first; its repetition ends the same.
AROUND_A_CRASH: tuple[list[Event], ...] = (
    [(501, 10, "U", "a", "x"), (502, 10, "U", "a", "x"), (503, 10, "U", "a", "x")],
    [(501, 15, "U", "b", "y"), (502, 15, "U", "b", "z"), (504, 8, "U", "c", "x"), (503, 20, "D", None, None)],
    [(501, 20, "D", None, None), (502, 20, "U", "a", "y"), (504, 9, "D", None, None)],
)
# A batch that changes no row of the table is remembered all the same: what is older stays out.
ENDED = [(601, 10, "U", "a", "x"), (601, 20, "D", None, None)]
ALONE = [(600, 20, "D", None, None), (601, 20, "U", "b", "x")]
OLDER = [(600, 10, "U", "a", "x")]


def batches(variant: Variant, chance: random.Random) -> list[list[Event]]:
    """The events of a variant in the order in which they are applied: those of the cases, and random ones among them."""
    count = len(variant.limits)
    sent = [
        (key, chance.randint(1, 8), chance.choice("UUUD"), chance.choice([None, "a", "b"]), chance.choice([None, "x", "y"]))
        for key in range(1000, 1100)
        for _ in range(chance.randint(1, 7))
    ]  # fmt: skip
    if variant.truncated:
        sent += [(None, chance.randint(2, 6), "T", None, None) for _ in range(2)]
    if variant.named:
        choices = (None, [], ["name"], [None, "city"], ["name", "city", "no column"])
        sent = [(*event, chance.choice(choices)) for event in sent]
    # Some come twice.
    arrivals = [*sent, *chance.sample(sent, 40)]
    chance.shuffle(arrivals)
    cuts = [0, *sorted(chance.sample(range(1, len(arrivals)), count - 1)), len(arrivals)] if SOAK else [
        len(arrivals) * step // count for step in range(count + 1)
    ]  # fmt: skip
    parts = [arrivals[start:end] for start, end in itertools.pairwise(cuts)]
    for step, part in enumerate(parts):
        # The last one has what is left of the cases: how events are cut makes no difference.
        steps = [step] if step < count - 1 else range(step, LONGEST)
        written = [event for one in steps for event in case_events(variant.cases, one)]
        written += AROUND_A_CRASH[step] if variant.crash else []
        # These set all columns.
        part.extend([(*event, None) for event in written] if variant.named else written)
    if variant.delete_alone:
        parts[0] += ENDED
        parts[-1] += OLDER
    return parts


def apply_all(table: Changes, variant: Variant, parts: list[list[Event]], limits: tuple[int, ...]) -> None:
    """Apply the batches in their order, with a crash and its repetition where the variant has one."""
    with pytest.MonkeyPatch.context() as patched:

        def apply(step: int, **which: Any) -> None:
            patched.setattr(driver_rows, "LOCAL_ROWS", limits[step])
            table.apply(parts[step], **which)

        apply(0)
        if variant.delete_alone:
            table.apply(ALONE)
        if not variant.crash:
            for step in range(1, len(parts)):
                apply(step)
            return
        interrupted = table.batches + 1
        before = newest_version(table.target.memory / "events") or 0
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(
                importlib.import_module(f"headwater_spark.auto_cdc.{variant.crash}"), "_merge", crash
            )
            broken.setattr(door, "rewrite", crash)
            with pytest.raises(RuntimeError, match="killed here"):
                apply(2)
        assert (newest_version(table.target.memory / "events") or 0) > before
        apply(1, flow="other")
        # Under the number that it had, as Spark repeats it: Delta must not take it for done, beside the table neither.
        apply(2, batch=interrupted)
        assert newest_batch(table.target.memory / "events") == ("flow", interrupted)
        apply(2, batch=interrupted)


def newest_batch(path: Path) -> tuple[str, int]:
    """The flow and the number of the batch that a table's last commit names."""
    metadata = json.loads(LogReader(str(path)).history(1)[0]["userMetadata"])
    return metadata["flow"], metadata["batch"]


def crash(*_: object) -> None:
    """What a SIGKILL leaves: nothing after this point happened."""
    message = "killed here"
    raise RuntimeError(message)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", VARIANTS)
def test_any_order(spark: SparkSession, tmp_path: Path, name: str):
    """Written cases beside random events over many keys, shuffled, cut into batches, some sent twice, decided on the driver or
    by Spark, with a crash between the two commits: each case has its rows, and the table is the oracle's.
    """
    variant, chance = VARIANTS[name], random.Random(SEED)
    parts = batches(variant, chance)
    limits = tuple(chance.choice([LOCAL, LOCAL, SPARK, 500]) for _ in parts) if SOAK else variant.limits
    print(f"HEADWATER_SEED={SEED}, at most {limits} rows on the driver")
    table = Changes(spark, tmp_path, flow(**variant.options), variant.schema)
    apply_all(table, variant, parts, limits)
    columns = ("key", "at", "op", "name", "city", *(["said"] if variant.named else []))
    sent = [event for part in parts for event in part] + (ALONE if variant.delete_alone else [])
    wanted = (expected_scd2 if variant.history else expected_scd1)(
        [dict(zip(columns, event, strict=True)) for event in sent],
        **{
            "keys": ("key",), "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D", "except_column_list": ("op",),
            **variant.oracle,
        },
    )  # fmt: skip
    found = table.rows('key, "__START_AT"' if variant.history else "key")
    assert found == [tuple(row.values()) for row in wanted]
    assert (
        case_results(variant.cases, [dict(zip(wanted[0], row, strict=True)) for row in found])
        == variant.cases
    )


@pytest.fixture
def changes(spark: SparkSession, tmp_path: Path) -> Callable[..., Changes]:
    return lambda properties={}, **options: Changes(spark, tmp_path, flow(**options), properties=properties)


def test_what_is_forgotten_in_time(changes: Callable[..., Changes]):
    """A tombstone keeps an older event out until the target's retention has passed, and no longer; also where the table's own
    id of the batch has expired meanwhile.
    """
    table = changes({"delta.setTransactionRetentionDuration": "interval 1 days"}, **WITHOUT_SEQUENCE)
    path = table.target.path
    table.apply([(1, 10, "U", "a", "x"), (1, 20, "D", None, None), (2, 10, "U", "a", "x")])
    then = time.time() - 3 * 86_400
    for commit in (path / "_delta_log").glob("*.json"):
        text = re.sub(r'"(lastUpdated|timestamp)":[0-9]+', rf'"\1":{then * 1000:.0f}', commit.read_text())
        commit.write_text(text)
        os.utime(commit, (then, then))
    assert LogReader(str(path)).transaction_version("tests.flow@0") is None
    expire(table.spark, table.columns, replace(table.target, retention=timedelta(hours=1)))
    table.apply([(1, 15, "U", "late", "x"), (2, 9, "U", "late", "x")])
    assert table.rows() == [(2, "a", "x")]
    expire(table.spark, table.columns, replace(table.target, retention=timedelta(0)))
    table.apply([(1, 17, "U", "late", "x"), (2, 5, "U", "late", "x")])
    assert table.rows() == [(1, "late", "x"), (2, "a", "x")]


def test_a_sequence_that_is_kept_from_now_on(changes: Callable[..., Changes]):
    """What came before a table kept its sequence still keeps older events out, and so does what came while it did."""
    table = changes(except_columns=("op", "at"))
    empty = table.spark.createDataFrame([], SCHEMA)
    check_unchanged(table.columns, table.target, None)
    table.apply([(1, 10, "U", "b", "x"), (2, 10, "U", "a", "x")])
    table.columns = change_columns(flow(), empty, None)
    check_unchanged(table.columns, table.target, None)
    table.apply([(1, 5, "U", "late", "x"), (2, 20, "U", "b", "y")])
    table.apply([(1, 10, "U", "a", "z"), (2, 15, "U", "late", "y"), (3, 11, "U", "c", "x")])
    kept = [(1, "b", "x", None), (2, "b", "y", 20), (3, "c", "x", 11)]
    assert table.rows() == kept
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
    table.apply([(1, 9, "D", None, None), (2, 15, "U", "late", "y"), (3, 10, "U", "late", "x")])
    assert table.rows() == kept
    # And a table without the column at all.
    table.columns = change_columns(flow(sequence_by="at - 0", except_columns=("op", "at")), empty, None)
    check_unchanged(table.columns, table.target, None, spark=table.spark)
    table.apply(
        [(2, 20, "D", None, None), (3, 10, "U", "late", "x"), (1, 11, "U", "e", "x"), (4, 1, "U", "new", "z")]
    )
    assert [row[:2] for row in table.rows()] == [(1, "e"), (3, "c"), (4, "new")]


def test_a_flow_that_changes(spark: SparkSession, tmp_path: Path):
    """Other keys, another sequence, another type or columns_to_update make another table; the spelling of a key does not."""
    target = ChangeTarget(tmp_path / "table", tmp_path / "memory")
    empty = spark.createDataFrame([], f"{SCHEMA}, said ARRAY<STRING>")

    def check(target: ChangeTarget = target, **options: Any) -> None:
        check_unchanged(change_columns(flow(**options), empty, None), target, None)

    check(except_columns=("op", "said"))
    made_with = json.loads((tmp_path / "memory" / "made_with.json").read_text())
    check(except_columns=("op", "said"), keys=("`KEY`",))
    for options in ({"keys": ("key", "name")}, {"sequence_by": "cast(at as string)"}, {"history": True}):
        with pytest.raises(ChangeFlowChanged, match="changed from"):
            check(except_columns=("op", "said"), **options)
    assert json.loads((tmp_path / "memory" / "made_with.json").read_text()) == made_with
    history = {
        "history": True,
        "except_columns": ("op", "said"),
        "target": replace(target, memory=tmp_path / "of_history"),
    }
    check(**history)
    with pytest.raises(ChangeFlowChanged, match="columns_to_update"):
        check(**history, columns_to_update="said")


def test_what_something_else_wrote(changes: Callable[..., Changes]):
    """A row of another writer counts with the sequence that it has; without one every event is newer than it."""
    table = changes()
    table.apply([(1, 10, "U", "a", "x"), (2, 10, "U", "a", "x")])
    others = {"key": [3, 4], "at": [20, None], "name": ["other"] * 2, "city": [None] * 2}
    form = pa.schema([("key", pa.int32()), ("at", pa.int32()), ("name", pa.string()), ("city", pa.string())])
    write_deltalake(str(table.target.path), pa.table(others, form), mode="append")
    LogReader(str(table.target.path)).delete("key = 2")
    table.apply([(key, 15, "U", "b", "y") for key in (2, 3, 4)])
    assert table.rows() == [(1, 10, "a", "x"), (2, 15, "b", "y"), (3, 20, "other", None), (4, 15, "b", "y")]
    # All keys have rows by now: the merge can do without inserts.
    table.apply([(1, 30, "U", "c", "z"), (3, 19, "U", "late", "z"), (4, 30, "D", None, None)])
    assert table.rows() == [(1, 30, "c", "z"), (2, 15, "b", "y"), (3, 20, "other", None)]
