"""Which rows of a source changed between two versions: those that came or went more often than the reverse, in the columns that are used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater_spark.views import changed_rows as module
from headwater_spark.views import digests
from headwater_spark.views.changed_rows import ChangedRows, FilesMissing, FilesUnknown
from headwater_spark.views.known_rows import SIGN

ROWS = st.lists(st.tuples(st.integers(1, 2), st.one_of(st.none(), st.integers(1, 2))), max_size=4)
SCHEMA = T.StructType([T.StructField("a", T.LongType()), T.StructField("b", T.LongType())])


def frame(rows: Any, *names: str) -> Frame:
    columns = names or ("a", "b")
    return Frame([dict(zip(columns, row, strict=True)) for row in rows], columns)


class Feed:
    """In the place of Spark's reader: a change feed, and the options that it is read with."""

    rows: Frame
    options: dict[str, str]

    def __init__(self, _: Any) -> None:
        Feed.options = {}

    def format(self, _: str) -> Self:
        return self

    def option(self, name: str, value: str) -> Self:
        Feed.options[name] = value
        return self

    def load(self, _: str) -> Frame:
        return Feed.rows


def changed(
    monkeypatch: pytest.MonkeyPatch, came: Any, went: Any, *, kind: ChangeKind = ChangeKind.CHANGED, feed: bool = False, columns: tuple[str, ...] = ("a",),
    schema: T.StructType = SCHEMA, ignores: str = "false", size: int = 0,
) -> ChangedRows:  # fmt: skip
    """The changes of a source: rows of files that came and of files that went, or of its feed."""
    plain_functions(monkeypatch, module, digests)
    files = {"came": came, "went": went}
    monkeypatch.setattr(module, "missing_file", lambda *_: None)
    monkeypatch.setattr(module, "rows_of_files", lambda _, __, adds: frame(files[adds[0]["path"]]))
    monkeypatch.setattr(module, "DataFrameReader", Feed)
    kinds = [
        ("insert", came),
        ("update_postimage", came[:0]),
        ("delete", went),
        ("update_preimage", went[:0]),
    ]
    Feed.rows = frame([(*row, kind) for kind, rows in kinds for row in rows], "a", "b", "_change_type")
    relation = SimpleNamespace(schema=lambda: SimpleNamespace(json=schema.json))
    leaf: Any = SimpleNamespace(folder=Path("t"), clustering=(), relation=relation)
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: ignores))
    change = SourceChange(kind, 3, 7, ({"path": "came", "size": size},), ({"path": "went"},), feed)
    return ChangedRows(session, leaf, change, columns)


def net(came: Any, went: Any, *places: int) -> dict[Any, int]:
    """How much more often each row came than it went, in some columns."""
    counts: Counter[Any] = Counter()
    for rows, sign in ((came, 1), (went, -1)):
        for row in rows:
            counts[tuple(row[place] for place in places)] += sign
    return {row: count for row, count in counts.items() if count}


@pytest.mark.parametrize("feed", [True, False])
@given(came=ROWS, went=ROWS)
def test_rows_that_changed(feed: bool, came: Any, went: Any):
    """By the files or by the feed: each once, with how much more of it came than went; what changed in another column has not."""
    with pytest.MonkeyPatch.context() as patch:
        for columns, places in ((("a",), (0,)), (("a", "b"), (0, 1)), (("b",), (1,))):
            rows = changed(patch, came, went, feed=feed, columns=columns)
            signed: Any = rows.signed()
            assert {tuple(row[c] for c in columns): row[SIGN] for row in signed.rows} == net(
                came, went, *places
            )
            touched: Any = rows.touched()
            assert touched.columns == list(columns)
            assert sorted(map(repr, (tuple(row.values()) for row in touched.rows))) == sorted(
                map(repr, net(came, went, *places))
            )


@given(came=ROWS, went=ROWS)
def test_rows_of_which_some_columns_are_read(came: Any, went: Any):
    """Of large files the other columns are digested: what is read of rows that changed comes once, and of no other row."""
    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("a", 0), ("b", 1)):
            rows = changed(patch, came, went, columns=("a", "b"), size=module.DIGESTED_BYTES)
            touched: Any = rows.touched({name, "c"})
            assert touched.columns == [name]
            values = [row[name] for row in touched.rows]
            assert Counter(values) == dict.fromkeys({row[place] for row in net(came, went, 0, 1)}, 1)


@pytest.mark.parametrize(
    ("more", "needed"),
    [
        ({"size": 1}, {"a"}),
        ({"feed": True}, {"a"}),
        ({"kind": ChangeKind.APPENDED}, {"a"}),
        ({"schema": T.StructType([SCHEMA["a"], T.StructField("b", T.ArrayType(T.LongType()))])}, {"a"}),
        ({"schema": T.StructType([SCHEMA["a"], T.StructField("b", T.MapType(T.LongType(), T.LongType()))])}, {"a"}),
        ({}, {"a", "b"}),
        ({}, set()),
        ({}, None),
    ],
)  # fmt: skip
def test_what_is_not_digested(monkeypatch: pytest.MonkeyPatch, more: Any, needed: Any):
    """Small files, feeds, what only came, values that hold others, and rows that are read whole are compared as they are."""
    arguments = {"columns": ("a", "b"), "size": module.DIGESTED_BYTES, **more}
    rows = changed(monkeypatch, [(1, 1), (1, 2)], [], **arguments)
    touched: Any = rows.touched(needed)
    assert [tuple(row.values()) for row in touched.rows] == [(1, 1), (1, 2)]


@given(now=ROWS, came=ROWS, went=ROWS)
def test_rows_that_are_there_or_were(now: Any, came: Any, went: Any):
    """Those of now, and those that went and did not come again."""
    with pytest.MonkeyPatch.context() as patch:
        ever: Any = changed(patch, came, went).ever(frame(now))  # type: ignore[arg-type]
        gone = [row for row, count in net(came, went, 0).items() if count < 0]
    assert sorted((row["a"],) for row in ever.rows) == sorted([*((row[0],) for row in now), *gone])


def test_rows_of_a_source_that_grew(monkeypatch: pytest.MonkeyPatch):
    """Each as often as it came; nothing was there that is not there now."""
    rows = changed(monkeypatch, [(1, 1), (1, 2)], [(2, 2)], kind=ChangeKind.APPENDED)
    signed: Any = rows.signed()
    assert [tuple(row.values()) for row in signed.rows] == [(1, 1), (1, 1)]
    ever: Any = rows.ever(frame([(5, 5)]))  # type: ignore[arg-type]
    assert [tuple(row.values()) for row in ever.rows] == [(5,)]


def test_the_versions_of_a_feed(monkeypatch: pytest.MonkeyPatch):
    """Those after the last refresh, up to the one that is read; a session that reads past missing files reads no feed."""
    changed(monkeypatch, [(1, 1)], [], feed=True).signed()
    assert Feed.options == {"readChangeFeed": "true", "startingVersion": "4", "endingVersion": "7"}
    Feed.options = {}
    changed(monkeypatch, [(1, 1)], [], feed=True, ignores="true").signed()
    assert Feed.options == {}


def test_images_of_updates(monkeypatch: pytest.MonkeyPatch):
    """What a row was before went, and what it is came."""
    rows = changed(monkeypatch, [], [], feed=True, columns=("a",))
    Feed.rows = frame([(1, 0, "update_preimage"), (2, 0, "update_postimage")], "a", "b", "_change_type")
    signed: Any = rows.signed()
    assert {row["a"]: row[SIGN] for row in signed.rows} == {1: -1, 2: 1}


@pytest.mark.parametrize("kind", [T.MapType(T.StringType(), T.LongType()), T.ArrayType(T.DoubleType())])
def test_values_that_are_not_compared(monkeypatch: pytest.MonkeyPatch, kind: T.DataType):
    """Rows with such a column are all taken as changed, also where one came and went."""
    schema = T.StructType([SCHEMA["a"], T.StructField("b", kind)])
    rows = changed(monkeypatch, [(1, 1)], [(1, 1)], columns=("a", "b"), schema=schema)
    signed: Any = rows.signed()
    assert [row[SIGN] for row in signed.rows] == [1, -1]


def test_files_that_are_gone(monkeypatch: pytest.MonkeyPatch):
    """They are named; and of files that went it must be known in which partition they were."""
    rows = changed(monkeypatch, [(1, 1)], [])
    monkeypatch.setattr(module, "missing_file", lambda *_: Path("came"))
    with pytest.raises(FilesMissing, match="came"):
        rows.signed()
    with pytest.raises(FilesUnknown):
        module._as_add({"path": "x"}, ["day"])
    assert module._as_add({"path": "x", "size": 3, "deletionTimestamp": 5}, []) == {
        "path": "x", "partitionValues": {}, "size": 3, "modificationTime": 5, "dataChange": True,
    }  # fmt: skip
