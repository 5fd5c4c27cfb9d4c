"""What Arrow settles of random batches is what the oracle computes from all events, and the rest is left to Spark."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc.change_columns import DELETE, END_AT, SEQUENCE, START_AT, ChangeColumns
from headwater_spark.auto_cdc.change_events import ROW
from headwater_spark.auto_cdc.on_driver.events import facts_of, split_by_keys, split_repeated, tied
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.rows import arrow_form
from headwater_spark.auto_cdc.on_driver.settle import Settled, settle_history, settle_latest
from headwater_spark.auto_cdc.side_table import REMOVED

KEYS, TIE = ("key", "part"), "tie"
Event = dict[str, Any]
Key = tuple[Any, ...]
# What a number of a sequence becomes, by the sequence's type.
SEQUENCES: dict[str, tuple[T.DataType, Callable[[int], Any]]] = {
    "INT": (T.IntegerType(), lambda number: number),
    "DATE": (T.DateType(), lambda number: date(1969, 12, 28) + timedelta(days=number)),
    "TIMESTAMP": (T.TimestampType(), lambda n: datetime(1969, 12, 31, 23, 59, 59, n, tzinfo=UTC)),
}


def columns_of(
    kind: T.DataType, *, history: bool, kept: bool, tracked: tuple[str, ...] = ()
) -> ChangeColumns:
    """The columns of a flow over events of ``key, part, at, name, size``; no expression of it is looked at here."""
    nothing: Any = None
    fields = (
        T.StructField("key", T.IntegerType()), T.StructField("part", T.StringType()), *([T.StructField("at", kind)] if kept else []),
        T.StructField("name", T.StringType()), T.StructField("size", T.DoubleType()),
    )  # fmt: skip
    given_at = "at" if kept else None
    return ChangeColumns(KEYS, fields, nothing, kind, given_at, nothing, None, history, tracked, ())


def in_arrow(events: Iterable[Event], columns: ChangeColumns, *, ties: bool = False) -> Any:
    """Events as a batch on the driver has them."""
    schema = T.StructType(
        [
            *(f for f in columns.fields if f.name in KEYS),
            T.StructField(SEQUENCE, columns.sequence_type), T.StructField(DELETE, T.BooleanType()),
            T.StructField(ROW, T.StructType(list(columns.fields))),
            *([T.StructField(TIE, T.BooleanType())] if ties else []),
        ]
    )  # fmt: skip
    rows = [
        {
            **{key: event[key] for key in KEYS}, SEQUENCE: event["at"], DELETE: event["op"] == "D",
            ROW: {name: event[name] for name in columns.names}, TIE: event.get(TIE, False),
        }
        for event in events
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_form(schema))


def matching_rows(rows: Iterable[Mapping[str, Any]], columns: ChangeColumns) -> MatchingRows:
    """The target's rows as they were looked up."""
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_form(columns.target_schema))
    return MatchingRows(0, table, None, {}, None, False)


def key_of(row: Mapping[str, Any]) -> Key:
    return tuple(row[key] for key in KEYS)


def winner(events: list[Event]) -> Event:
    """Of events of one key and sequence: a delete, else the greatest row, NULL below all."""

    def rank(event: Event) -> Any:
        return [(event[name] is not None, event[name]) for name in ("name", "size")]

    deletes = [event for event in events if event["op"] == "D"]
    return deletes[0] if deletes else max(events, key=rank)


def by(events: Iterable[Event], *names: str) -> dict[Key, list[Event]]:
    groups: dict[Key, list[Event]] = defaultdict(list)
    for event in events:
        groups[tuple(event[name] for name in names)].append(event)
    return groups


def reduced(batch: list[Event], columns: ChangeColumns) -> list[Event]:
    """One event of each key (and sequence, for a history): alone ones as the code finds them, others by the rules."""
    identity = [*KEYS, SEQUENCE] if columns.history else list(KEYS)
    alone, repeated = split_repeated(in_arrow(batch, columns), identity)
    each = [*KEYS, "at"]
    wanted = [winner(same) for same in by(batch, *each).values()]
    if not columns.history:
        wanted = [max(same, key=lambda event: event["at"]) for same in by(wanted, *KEYS).values()]
    groups = by(batch, *each) if columns.history else by(batch, *KEYS)
    assert alone.num_rows == sum(len(same) == 1 for same in groups.values())
    assert alone.num_rows + repeated.num_rows == len(batch)
    assert tied(repeated, [*KEYS, SEQUENCE]) == len(batch) - len(by(batch, *each))
    return wanted


@dataclass
class Table:
    """A target that batches are settled into. What Arrow leaves, the oracle decides in the place of Spark."""

    columns: ChangeColumns
    sent: list[Event] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    settled: int = 0

    def oracle(self) -> list[dict[str, Any]]:
        options: dict[str, Any] = {
            "keys": KEYS,
            "sequence_by": "at",
            "apply_as_deletes": lambda row: row["op"] == "D",
        }
        options["column_list"] = self.columns.names
        if not self.columns.history:
            return expected_scd1(self.sent, **options)
        return expected_scd2(self.sent, **options, track_history_column_list=self.columns.tracked)

    def apply(self, batch: list[Event]) -> None:
        """Settle a batch, and compare."""
        before = list(self.sent)
        events = reduced(batch, self.columns)
        self.sent += batch
        settled = self._history(events, before) if self.columns.history else self._latest(events, before)
        left = {key_of(row) for row in settled.undecided.to_pylist()}
        changed = settled.changes.to_pylist()
        assert left.isdisjoint(map(key_of, changed))
        self.settled += len({key_of(event) for event in events} - left)
        identity = (*KEYS, START_AT) if self.columns.history else KEYS
        rows = {tuple(row[name] for name in identity): row for row in self.rows}
        for change in changed:
            gone = change.pop(REMOVED)
            rows.pop(tuple(change[name] for name in identity), None)
            if not gone:
                rows[tuple(change[name] for name in identity)] = change
        wanted = self.oracle()
        got = [row for row in rows.values() if key_of(row) not in left]
        assert ordered(got) == ordered(row for row in wanted if key_of(row) not in left)
        for key in {key_of(event) for event in events} - left:
            # Spark is not asked to remember anything of what Arrow settles.
            assert not self.columns.history or not remembers(of_key(self.sent, key), self.columns)
        self.rows = wanted

    def _latest(self, events: list[Event], before: list[Event]) -> Settled:
        kept = self.columns.sequence_column is not None
        known = {
            key: max((event["at"], event["op"] == "D") for event in same)
            for key, same in by((e for e in before if not kept or e["op"] == "D"), *KEYS).items()
        }
        keys = pa.Table.from_pylist([dict(zip(KEYS, key, strict=True)) for key in known], schema=in_arrow([], self.columns).select(list(KEYS)).schema)  # fmt: skip
        new, others = split_by_keys(in_arrow(events, self.columns), KEYS, keys)
        assert {key_of(row) for row in new.to_pylist()} == {key_of(e) for e in events} - set(known)
        assert new.num_rows + others.num_rows == len(events)
        live = []
        for event in events:
            at, deleted = known.get(key_of(event), (None, False))
            tie = at is not None and event["at"] == at
            if at is None or event["at"] > at or (tie and not deleted):
                live.append({**event, TIE: tie and event["op"] != "D"})
        arrow = in_arrow(live, self.columns, ties=True)
        settled = settle_latest(
            arrow, self.columns, matching_rows(self.rows, self.columns), TIE, self.columns.target_schema
        )
        assert settled is not None
        return settled

    def _history(self, events: list[Event], before: list[Event]) -> Settled:
        known = [
            dict(zip(KEYS, key, strict=True))
            for key, same in by(before, *KEYS).items()
            if remembers(same, self.columns)
        ]
        remembered = pa.Table.from_pylist(known, schema=in_arrow([], self.columns).select(list(KEYS)).schema)
        arrow, matches = in_arrow(events, self.columns), matching_rows(self.rows, self.columns)
        settled = settle_history(arrow, self.columns, matches, remembered, self.columns.target_schema)
        assert settled is not None
        return settled


def ordered(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    return sorted((dict(row) for row in rows), key=lambda row: [str(value) for value in row.values()])


def of_key(events: Iterable[Event], key: Key) -> list[Event]:
    return [event for event in events if key_of(event) == key]


def remembers(events: list[Event], columns: ChangeColumns) -> bool:
    """Whether rows alone do not tell the events of a key: a run of several, or a delete that ends no row."""
    history = [winner(same) for _, same in sorted(by(events, "at").items())]
    run: Event | None = None
    for event in history:
        if event["op"] == "D":
            if run is None:
                return True
            run = None
        elif run is not None and all(run[name] == event[name] for name in columns.tracked):
            return True
        else:
            run = event
    return False


NUMBERED = st.fixed_dictionaries(
    {
        "key": st.integers(0, 2), "part": st.sampled_from(["a", "é"]), "at": st.integers(1, 9), "op": st.sampled_from("UUUD"),
        "name": st.sampled_from([None, "", "a", "b"]), "size": st.sampled_from([None, 0.5, 2.0]),
    }
)  # fmt: skip
BATCHES = st.lists(st.lists(NUMBERED, min_size=1, max_size=7), min_size=1, max_size=5)
FLOWS = {
    "type 1, sequence kept": {"history": False, "kept": True},
    "type 1, sequence left out": {"history": False, "kept": False},
    "type 2": {"history": True, "kept": False, "tracked": ("name", "size")},
    "type 2, sequence kept": {"history": True, "kept": True, "tracked": ("at", "name", "size")},
    "type 2, one column tracked": {"history": True, "kept": False, "tracked": ("name",)},
}


def event(at: int, op: str = "U", name: str | None = "a", key: int = 0) -> Event:
    return {"key": key, "part": "a", "at": at, "op": op, "name": name, "size": 0.5}


@pytest.mark.parametrize("flow", FLOWS)
@settings(max_examples=120, deadline=None)
@given(batches=BATCHES, sequence=st.sampled_from(sorted(SEQUENCES)))
@example(batches=[[event(1)], [event(2, "D")], [event(3)], [event(2)]], sequence="INT")
@example(batches=[[event(5)], [event(5, name="b")], [event(5, "D")]], sequence="DATE")
@example(batches=[[event(3, "D")], [event(2)], [event(4, name=None)], [event(6, name=None)]], sequence="INT")
def test_random_batches(flow: str, batches: list[list[Event]], sequence: str):
    """After each batch the settled keys have the oracle's rows, and nothing is settled that Spark would have to remember."""
    options: Any = FLOWS[flow]
    kind, at = SEQUENCES[sequence]
    table = Table(columns_of(kind, **options))
    for batch in batches:
        table.apply([{**event, "at": at(event["at"])} for event in batch])


@pytest.mark.parametrize("flow", FLOWS)
def test_most_events_are_settled(flow: str):
    """New keys, later events, later deletes and what comes after any of these, one of each key in a batch, need no Spark."""
    options: Any = FLOWS[flow]
    table = Table(columns_of(T.IntegerType(), **options))
    table.apply([event(1, key=key) for key in range(3)])
    table.apply([event(2, key=0, name="b"), event(2, "D", key=1), event(2, key=3)])
    table.apply([event(3, key=0, name="c"), event(3, key=1)])
    assert table.settled == 8
    assert len(table.rows) == (7 if options["history"] else 4)


def test_flows_that_arrow_does_not_settle():
    """Truncates, NULLs that say nothing, named columns, and sequences or tracked columns that Arrow compares otherwise are Spark's."""
    plain = columns_of(T.IntegerType(), history=True, kept=False, tracked=("name",))
    nothing: Any = "an expression"
    spark = [
        replace(plain, truncate=nothing),
        replace(plain, ignored=("name",)),
        replace(plain, selected=nothing),
        replace(plain, sequence_type=T.DoubleType()),
        replace(plain, tracked=("tags",)),
    ]
    for columns in spark:
        events = in_arrow([], plain)
        matches = matching_rows([], plain)
        assert settle_history(events, columns, matches, None, plain.target_schema) is None
    assert (
        settle_history(in_arrow([], plain), plain, matching_rows([], plain), None, plain.target_schema)
        is not None
    )
    latest = columns_of(T.IntegerType(), history=False, kept=True)
    for columns in (replace(latest, truncate=nothing), replace(latest, sequence_type=T.StringType()), replace(latest, sequence_column="other")):  # fmt: skip
        assert settle_latest(in_arrow([], latest, ties=True), columns, matching_rows([], latest), TIE, latest.target_schema) is None  # fmt: skip


def test_a_key_with_several_rows_is_left():
    """Where a key has two open rows, or two rows in type 1, which something else wrote, Arrow decides nothing about it."""
    history = columns_of(T.IntegerType(), history=True, kept=False, tracked=("name",))
    twice = [{"key": 0, "part": "a", "name": "a", "size": 1.0, START_AT: at, END_AT: None} for at in (1, 2)]
    settled = settle_history(in_arrow([event(5)], history), history, matching_rows(twice, history), None, history.target_schema)  # fmt: skip
    assert settled is not None
    assert (settled.changes.num_rows, settled.undecided.num_rows) == (0, 1)
    # A row that ends after the open one begins.
    overlapping = [twice[0] | {END_AT: 4}, twice[1]]
    settled = settle_history(in_arrow([event(5, name="b")], history), history, matching_rows(overlapping, history), None, history.target_schema)  # fmt: skip
    assert settled is not None
    assert (settled.changes.num_rows, settled.undecided.num_rows) == (0, 1)
    latest = columns_of(T.IntegerType(), history=False, kept=True)
    rows = [{"key": 0, "part": "a", "at": at, "name": "a", "size": 1.0} for at in (1, 2)]
    for column in ("at", None):
        with_sequence = replace(latest, sequence_column=column)
        settled = settle_latest(in_arrow([event(5)], latest, ties=True), with_sequence, matching_rows(rows, latest), TIE, latest.target_schema)  # fmt: skip
        assert settled is not None
        assert (settled.changes.num_rows, settled.undecided.num_rows) == (0, 1)


def test_what_is_no_number_is_equal_to_itself():
    """A tracked value that is NaN, and stays so, begins no new row; Spark sees the event, which belongs to the row's run."""
    columns = columns_of(T.IntegerType(), history=True, kept=False, tracked=("size",))
    row = {"key": 0, "part": "a", "name": "a", "size": math.nan, START_AT: 1, END_AT: None}
    for size, left in ((math.nan, 1), (1.0, 0), (None, 0)):
        later = in_arrow([{**event(5), "size": size}], columns)
        settled = settle_history(later, columns, matching_rows([row], columns), None, columns.target_schema)
        assert settled is not None
        assert settled.undecided.num_rows == left


@given(
    events=st.lists(NUMBERED, min_size=1, max_size=8), missing=st.sampled_from([None, "at", "key", "part"])
)
@settings(deadline=None)
def test_facts_of_a_batch(events: list[Event], missing: str | None):
    """A NULL sequence or key is reported, and so are the deletes, the first sequence and the range of the keys."""
    columns = columns_of(T.IntegerType(), history=False, kept=True)
    if missing is not None:
        events = [*events, {**event(3), missing: None}]
    facts = facts_of(in_arrow(events, columns), 99, 1, columns)
    assert facts["no_sequence"] == (missing == "at")
    assert facts["no_key"] == (missing in ("key", "part"))
    assert facts["deletes"] == sum(e["op"] == "D" for e in events)
    assert facts["first_sequence"] == str(min(e["at"] for e in events if e["at"] is not None))
    assert (facts["low0"], facts["high1"]) == (
        str(min(e["key"] for e in events if e["key"] is not None)),
        max(e["part"] for e in events if e["part"] is not None),
    )
