"""Type 1 by its definition: whatever order and cut events arrive in, a target has each key's row as its last event left it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyspark.sql import types as T
from tests.integration.change_cases import LATEST, case_events, case_results
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    FIELDS,
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row, col, lit
from tests.unit.headwater_spark.plain_merge import PlainTable
from tests.unit.headwater_spark.plain_rows import Frame

from headwater.testing.auto_cdc import expected_scd1
from headwater_spark.auto_cdc import merge_latest as module
from headwater_spark.auto_cdc.change_columns import DELETE, SEQUENCE, ChangeColumns
from headwater_spark.auto_cdc.merge_latest import AT, DELETED, EXPIRES, merge_latest
from headwater_spark.auto_cdc.on_driver.rows import Rows
from headwater_spark.auto_cdc.on_driver.verdict import Done
from headwater_spark.auto_cdc.side_table import RECORDED_AT
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

BESIDE = columns_of()
KEPT = columns_of(fields=(*FIELDS, T.StructField("at", T.LongType())), sequence_column="at")
# An event that comes late stays late, whatever was deleted before it.
CASES = {**LATEST, "D@1 | b@3 | a@2": "b", "D@1,b@3 | a@2": "b", "b@3 | D@1 | a@2": "b"}
TRUNCATES = {"truncate": col("op") == lit("T")}
FLOWS = {
    "beside": BESIDE, "kept": KEPT, "beside, truncates": replace(BESIDE, **TRUNCATES), "kept, truncates": replace(KEPT, **TRUNCATES),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def wanted(sent: list[Row], columns: ChangeColumns) -> list[Row]:
    return in_order(
        expected_scd1(
            sent, keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D", column_list=columns.names,
            apply_as_truncates=lambda row: columns.truncate is not None and row["op"] == "T",
        )
    )  # fmt: skip


@pytest.mark.parametrize("columns", [BESIDE, KEPT], ids=["beside", "kept"])
def test_cases(columns: ChangeColumns):
    """Each short sequence of events comes to the row that is written beside it, whether or not the table keeps the sequence."""
    target = Merged(columns, merge_latest)
    for step in range(3):
        target.apply([event(*one) for one in case_events(CASES, step)])
    assert case_results(CASES, target.rows()) == CASES


@pytest.mark.parametrize("name", FLOWS)
@settings(max_examples=100)
@given(batches=events("UUUDDT"))
def test_any_order(name: str, batches: list[list[Row]]):
    """After each batch the rows are those of the definition, with truncates and without, a truncate at an event's own moment too."""
    columns = FLOWS[name]
    target, sent = Merged(columns, merge_latest), list[Row]()
    for batch in batches:
        given_events = [row for row in batch if row["op"] != "T" or columns.truncate is not None]
        if not given_events:
            continue
        sent += given_events
        target.apply(given_events)
        assert target.rows() == wanted(sent, columns)


def test_what_is_remembered():
    """Where the table keeps the sequence these are the deletes alone; else the sequence of every event that counts."""
    batch = [event(1, 3, "U", "a", None), event(2, 4, "D", None, None)]
    for columns, remembered in ((KEPT, [(2, 4, True)]), (BESIDE, [(1, 3, False), (2, 4, True)])):
        target = Merged(columns, merge_latest)
        target.apply([event(1, 3, "U", "a", None)])
        before = [] if columns is KEPT else [(1, 3, False)]
        assert [(row["key"], row[AT], row[DELETED]) for row in target.side.rows or ()] == before
        target.apply(batch)
        rows = [(row["key"], row[AT], row[DELETED]) for row in target.side.rows or ()]
        assert sorted(set(rows)) == remembered


def test_what_expires():
    """Deletes alone: without the sequence of a row that is there, an older event that comes late would be written over it."""
    assert EXPIRES == DELETED


def test_a_truncate_and_a_new_key(monkeypatch: pytest.MonkeyPatch):
    """A batch that truncates may insert any row: which keys the table had before says nothing."""
    monkeypatch.setattr(module, "_can_only_update", lambda *_: True)
    target = Merged(FLOWS["kept, truncates"], merge_latest)
    target.apply([event(1, 1, "T", None, None), event(1, 2, "U", "a", None)])
    assert [row["name"] for row in target.rows()] == ["a"]


def test_keys_that_are_all_there(monkeypatch: pytest.MonkeyPatch):
    """A batch only updates where the table has the key of each row that it writes; deleted keys do not count."""
    asked: list[Any] = []
    monkeypatch.setattr(
        module, "has_all_keys", lambda _, __, rows: asked.append(rows["key"].to_pylist()) or True
    )
    table = pa.table({"key": [1, 2, 3], DELETE: [False, True, False]})
    target: Any = SimpleNamespace(path=None)
    nothing: Any = None
    assert module._can_only_update(Rows(nothing, table), target, ("key",))
    assert asked == [[1, 3]]
    assert not module._can_only_update(Rows(nothing), target, ("key",))


@pytest.mark.parametrize("local", [True, False])
def test_what_is_remembered_comes_first(monkeypatch: pytest.MonkeyPatch, local: bool):
    """The side table has a batch before its target, under the same transaction: a crash between the two is taken back."""
    steps: list[tuple[str, Any]] = []
    nothing: Any = None
    rows = Rows(nothing, pa.table({"key": [1]}) if local else None)
    side: Any = SimpleNamespace(
        remembered_keys=lambda _: "keys", append_local=lambda _, transaction: steps.append(("local", transaction)),
        append=lambda _, transaction: steps.append(("by Spark", transaction)),
    )  # fmt: skip
    parts: dict[str, Any] = {
        "arrow_can_reduce": lambda _: True, "_live_on_driver": lambda *_: rows, "_rows_to_remember": lambda *_: rows,
        "_tombstones": lambda *_: 0, "with_counts": lambda transaction, _, **__: transaction, "_settled": lambda *_: "changes",
        "try_on_driver": lambda *given: steps.append(("target", given[3](nothing).transaction)) or Done(),
    }  # fmt: skip
    for name, part in parts.items():
        monkeypatch.setattr(module, name, part)
    batch: Any = SimpleNamespace(local="rows", columns=BESIDE, remaining=1, deletes=0)
    merge_latest(batch, nothing, side, BatchTransaction("p.f@0", 7, "{}"))
    assert [step for step, _ in steps] == ["local" if local else "by Spark", "target"]
    assert steps[0][1] == steps[1][1] == BatchTransaction("p.f@0", 7, "{}")


def test_deletes_on_the_driver_that_are_remembered():
    """Where the table keeps the sequence, the deletes alone; else all that counts."""
    rows = [{"key": 1, SEQUENCE: 3, DELETE: False}, {"key": 2, SEQUENCE: 4, DELETE: True}]
    frame: Any = Frame(rows, ["key", SEQUENCE, DELETE])
    live = Rows(frame, pa.Table.from_pylist(rows))
    batch: Any = SimpleNamespace(columns=KEPT, deletes=1, cleared_at=None)
    side: Any = None
    for columns, wanted in ((KEPT, [(2, 4, True)]), (BESIDE, [(1, 3, False), (2, 4, True)])):
        batch.columns = columns
        remembered = module._rows_to_remember(batch, live, side, None)
        assert remembered is not None
        assert [tuple(row.values()) for row in remembered.table.to_pylist()] == wanted
        shown: Any = remembered.frame
        assert [(row["key"], row[AT], row[DELETED]) for row in shown.rows] == wanted


def test_rows_from_before_the_table_kept_its_sequence():
    """An event at the remembered moment of such a row has to be the greater of the two, whichever of them came first."""
    for name, left in (("a", "b"), ("c", "c")):
        target = Merged(BESIDE, merge_latest)
        target.apply([event(1, 3, "U", "b", None)])
        target.columns, (row,) = KEPT, target.table.rows
        target.table = PlainTable(KEPT.target_schema, [{**row, "at": None}], session=target.table.session)
        target.apply([event(1, 3, "U", name, None)])
        assert [row["name"] for row in target.rows()] == [left]


def test_sequences_of_rows_that_others_wrote():
    """A row without a sequence, or without a whole key, says nothing that could be remembered."""
    written = [{"key": 1, "at": 3}, {"key": 2, "at": None}, {"key": None, "at": 4}]
    rows: Any = Frame(written, ["key", "at"])
    sequences: Any = module.sequences_of(rows, KEPT, "at")
    assert sequences.rows == [{"key": 1, AT: 3, DELETED: False}]


def test_a_compacted_row_keeps_its_age():
    """Of each key the row that counts is left, with the moment from which its retention runs."""
    remembered = [{"key": 1, AT: at, DELETED: at == 2, RECORDED_AT: age} for at, age in ((1, 9), (2, 7))]
    compacted: list[Any] = []
    side: Any = SimpleNamespace(
        read=lambda: Frame(remembered, ["key", AT, DELETED, RECORDED_AT]), compact=compacted.append
    )
    module.compact(side, BESIDE)
    assert [rows.rows for rows in compacted] == [[remembered[1]]]


@pytest.mark.parametrize(
    ("local", "op", "copied"), [(False, "U", True), (True, "U", False), (True, "T", True)]
)
def test_a_source_that_is_read_twice(monkeypatch: pytest.MonkeyPatch, local: bool, op: str, copied: bool):
    """Delta copies it, but for events on the driver alone: the rows that a truncate deletes are looked up in what it changes."""
    known_live = module._live

    @contextmanager
    def live(*parts: Any) -> Iterator[Rows]:
        with known_live(*parts) as events_there:
            yield Rows(events_there.frame, pa.table({"key": [1]}) if local else None)

    monkeypatch.setattr(module, "_live", live)
    monkeypatch.setattr(module, "_can_only_update", lambda *_: False)
    target = Merged(FLOWS["kept, truncates"], merge_latest)
    target.apply([event(1, 1, "U", "a", None), event(1, 2, op, None, None)])
    assert target.table.copied == [copied]


@pytest.mark.parametrize("known", [0, 1])
def test_events_of_keys_that_are_not_remembered(monkeypatch: pytest.MonkeyPatch, known: int):
    """None of them is a tie, whatever the target has of the key; those of remembered keys are compared with what is remembered."""
    events_ = pa.table({"key": [1, 2, 3], DELETE: [False] * 3})
    new = events_.slice(known)
    monkeypatch.setattr(module, "split_by_keys", lambda *_: (new, events_.slice(0, known)))
    monkeypatch.setattr(module, "local_frame", lambda *_: None)
    compared: list[Any] = []
    current = SimpleNamespace(select=lambda *_: pa.table({"key": [1], DELETE: [False], module._TIE: [True]}))
    monkeypatch.setattr(module, "_current", lambda *given: compared.append(given) or current)
    monkeypatch.setattr(module, "on_driver", lambda table: SimpleNamespace(table=table))
    batch: Any = SimpleNamespace(
        local=events_, columns=SimpleNamespace(keys=("key",)), events=SimpleNamespace(schema=T.StructType()),
        with_events=lambda rows: rows,
    )  # fmt: skip
    side: Any = SimpleNamespace(spark=None, rows_about=lambda rows: rows.num_rows)
    live = module._live_on_driver(batch, side, None).table
    ties = dict(zip(live["key"].to_pylist(), live[module._TIE].to_pylist(), strict=True))
    assert ties == {1: bool(known), 2: False, 3: False}
    assert [remembered for _, remembered, _ in compared] == [1] * known
