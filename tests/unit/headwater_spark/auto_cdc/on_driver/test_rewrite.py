"""Which rows a rewrite inserts, updates and deletes, in which files; and what it must not touch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import Row
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater_spark.auto_cdc.on_driver import rewrite as rewrite_module
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.rewrite import _Changes, _split, reason_against, rewrite
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import REMOVED
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, DataFile, RowCounts

SCHEMA = T.StructType(
    [T.StructField("key", T.IntegerType()), T.StructField("part", T.StringType()), T.StructField("v", T.IntegerType())]
)  # fmt: skip
FORM = pa.schema([("key", pa.int32()), ("part", pa.string()), ("v", pa.int32())])
IDENTITY = ("key", "part")
Key = tuple[int, str]


def in_arrow(rows: dict[Key, int] | list[tuple[int, str, int]]) -> Any:
    listed = [(*key, v) for key, v in rows.items()] if isinstance(rows, dict) else rows
    return pa.Table.from_pylist([dict(zip(FORM.names, row, strict=True)) for row in listed], schema=FORM)


def matching(rows: Any, files: list[str] | None = None, obstacle: str | None = None) -> MatchingRows:
    names = files or ["f"] * rows.num_rows
    return MatchingRows(3, rows, pa.array(names, pa.string()), {}, obstacle, False)


def changes_of(changes: dict[Key, int | None]) -> Any:
    rows = in_arrow({key: v or 0 for key, v in changes.items()})
    return rows.append_column(REMOVED, pa.array([v is None for v in changes.values()], pa.bool_()))


def as_dict(rows: Any) -> dict[Key, int]:
    return {(row["key"], row["part"]): row["v"] for row in rows.to_pylist()}


KEYS = st.tuples(st.integers(0, 3), st.sampled_from(["a", "é"]))


@settings(max_examples=150, deadline=None)
@given(
    old=st.dictionaries(KEYS, st.integers(0, 5), max_size=6),
    changes=st.dictionaries(KEYS, st.one_of(st.none(), st.integers(6, 9)), min_size=1, max_size=6),
    marked=st.sets(st.integers(0, 3)),
)
def test_what_changes(old: dict[Key, int], changes: dict[Key, int | None], marked: set[int]):
    """Applied to the rows, the parts give what the changes say; only files that have a changed row are touched, and of these
    the rows that change are known by their numbers.
    """
    files = [f"f{key[0]}" for key in old]
    matches = replace(matching(in_arrow(old), files), row_in_file=pa.array(range(100, 100 + len(old)), pa.int64()))  # fmt: skip
    split = _split(matches, changes_of(changes), IDENTITY, SCHEMA)
    assert isinstance(split, _Changes)
    known = {key: v for key, v in changes.items() if key in old}
    assert as_dict(split.inserted) == {
        key: v for key, v in changes.items() if key not in old and v is not None
    }
    assert as_dict(split.updated) == {key: v for key, v in known.items() if v is not None}
    assert as_dict(split.before) == {key: old[key] for key, v in known.items() if v is not None}
    assert as_dict(split.deleted) == {key: old[key] for key, v in known.items() if v is None}
    assert split.before["key"].to_pylist() == split.updated["key"].to_pylist()
    rows = list(old)
    for file, numbers in split.changed.items():
        assert sorted(rows[n - 100] for n in numbers) == sorted(key for key in known if f"f{key[0]}" == file)
    assert set(split.changed) == {f"f{key[0]}" for key in known}
    # A row whose old self is marked as deleted comes into a new file; one in a file that is written again does not.
    new = {key: v for key, v in changes.items() if v is not None and (key not in old or key[0] in marked)}
    assert as_dict(split.new_rows({f"f{number}" for number in marked})) == new
    assert split.counts == RowCounts(split.inserted.num_rows, split.updated.num_rows, split.deleted.num_rows)


@pytest.mark.parametrize("changes", [{(1, "a"): 9}, {(1, "a"): None}])
def test_a_key_with_several_rows(changes: dict[Key, int | None]):
    """Two rows of a key in the table, or two changes of one row, are for MERGE to decide."""
    twice = in_arrow([(1, "a", 1), (1, "a", 2)])
    assert _split(matching(twice), changes_of(changes), IDENTITY, SCHEMA) == "a key has several rows"
    two_changes = pa.concat_tables([changes_of(changes), changes_of(changes)])
    assert (
        _split(matching(in_arrow({(1, "a"): 1})), two_changes, IDENTITY, SCHEMA) == "a key has several rows"
    )
    assert isinstance(_split(matching(twice), changes_of({(2, "a"): 1}), IDENTITY, SCHEMA), _Changes)


def test_a_value_that_does_not_fit():
    """A value that Arrow can't bring into the table's type is no reason to fail."""
    wide = changes_of({(1, "a"): 9}).set_column(2, "v", pa.array([2**40], pa.int64()))
    assert (
        _split(matching(in_arrow({})), wide, IDENTITY, SCHEMA)
        == "a value does not fit its column as Arrow has it"
    )


def target(schema: T.StructType) -> OpenTarget:
    nothing: Any = None
    rows: Any = SimpleNamespace(schema=schema)
    return OpenTarget(Path(), nothing, rows)


def test_tables_that_are_not_rewritten():
    """The obstacle of the files, other columns, or an identity that Arrow compares otherwise: each has its reason, in this order."""
    free, blocked = matching(in_arrow({})), matching(in_arrow({}), obstacle="the table has rowTracking")
    assert reason_against(target(SCHEMA), free, IDENTITY, SCHEMA) is None
    more = T.StructType([*SCHEMA.fields, T.StructField("w", T.DoubleType())])
    others = "the table has other columns than the flow"
    assert reason_against(target(more), blocked, IDENTITY, SCHEMA) == blocked.obstacle
    assert reason_against(target(more), free, IDENTITY, SCHEMA) == others
    assert reason_against(target(SCHEMA), free, IDENTITY, more) == others
    retyped = T.StructType([*SCHEMA.fields[:2], T.StructField("v", T.LongType())])
    assert reason_against(target(retyped), free, IDENTITY, SCHEMA) == others
    compared = "a key or the sequence is of a type that Arrow compares otherwise"
    assert reason_against(target(more), free, (*IDENTITY, "w"), more) == compared
    swapped = T.StructType([*reversed(SCHEMA.fields)])
    assert reason_against(target(swapped), replace(free, has_change_feed=True), IDENTITY, SCHEMA) is None


class Rewrite:
    """In the place of a transaction that replaces files: what is committed. ``rows``: those of the files to write again."""

    def __init__(self, stored: list[Row], answer: str | None = None) -> None:
        self.stored, self.answer = stored, answer
        self.files: list[str] = []
        self.marks: dict[str, list[int]] = {}
        self.committed: list[Row] = []
        self.counts = RowCounts(0, 0, 0)

    @contextmanager
    def open(self, _: Any, __: Any, version: int, files: Any, ___: Any, *, marks: Any) -> Iterator[Any]:
        assert version == 3
        self.files = [file.path for file in files]
        self.marks = {mark.file.path: list(mark.rows) for mark in marks}
        yield self

    @property
    def rows(self) -> Frame:
        return Frame([dict(row["row"]) for row in self.stored if row["file"] in self.files], FORM.names)

    def commit(self, rows: Any, counts: RowCounts, _: Any) -> str | None:
        self.committed, self.counts = [] if rows is None else rows.rows, counts
        return self.answer

    def table(self) -> dict[Key, int]:
        """The rows that a reader has after the commit."""
        stay = [
            row["row"] for row in self.stored
            if row["file"] not in self.files and row["number"] not in self.marks.get(row["file"], ())
        ]  # fmt: skip
        new = [row for row in self.committed if row.get(CHANGE_TYPE) is None]
        keys = [(row["key"], row["part"]) for row in (*stay, *new)]
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, [row["v"] for row in (*stay, *new)], strict=True))

    def feed(self) -> list[tuple[str, Key, int]]:
        """The rows for the change feed."""
        kinds = [(row.get(CHANGE_TYPE), row) for row in self.committed]
        return sorted((kind, (row["key"], row["part"]), row["v"]) for kind, row in kinds if kind is not None)


def stored_rows(old: dict[Key, int]) -> list[Row]:
    """Rows with their file, by the first part of the key, and their number in it."""
    rows: list[Row] = []
    for key, v in old.items():
        file = f"f{key[0] % 2}"
        number = sum(row["file"] == file for row in rows)
        rows.append({"file": file, "number": number, "row": {"key": key[0], "part": key[1], "v": v}})
    return rows


def rewritten(
    monkeypatch: pytest.MonkeyPatch, old: dict[Key, int], changes: dict[Key, int | None], *, feed: bool, marks: bool, answer: str | None = None,
) -> tuple[Rewrite, str | None]:  # fmt: skip
    """Changes, written into a table with these rows; and why a MERGE has to do it."""
    stored = stored_rows(old)
    done = Rewrite(stored, answer)
    plain_functions(monkeypatch, rewrite_module)
    monkeypatch.setattr(rewrite_module, "file_rewrite", done.open)
    monkeypatch.setattr(
        rewrite_module, "local_frame", lambda _, rows, __: Frame(rows.to_pylist(), rows.column_names)
    )
    names = [row["file"] for row in stored]
    entry = {"stats": '{"numRecords": 1}'}
    files = {name: DataFile(name, 1, 1, names.count(name), 0, entry) for name in names}
    numbers = pa.array([row["number"] for row in stored], pa.int64())
    matches = replace(
        matching(in_arrow(old), names),
        files=files,
        has_change_feed=feed,
        row_in_file=numbers if marks else None,
    )
    session: Any = SimpleNamespace(schema=SCHEMA, sparkSession=None)
    nothing: Any = None
    batch = BatchTransaction("p.f@0", 7, "{}")
    reason = rewrite(OpenTarget(Path(), nothing, session), matches, changes_of(changes), IDENTITY, batch)
    return done, reason


@settings(max_examples=150)
@given(
    old=st.dictionaries(st.tuples(st.integers(0, 3), st.sampled_from("abc")), st.integers(0, 5), max_size=10),
    changes=st.dictionaries(KEYS, st.one_of(st.none(), st.integers(6, 9)), min_size=1, max_size=3),
    feed=st.booleans(),
    marks=st.booleans(),
)
def test_the_table_after_a_rewrite(
    old: dict[Key, int], changes: dict[Key, int | None], feed: bool, marks: bool
):
    """It has what the changes say, whether rows are marked or files written again; the feed says each change once, with the row
    before it, and nothing where files only came.
    """
    with pytest.MonkeyPatch.context() as patch:
        done, reason = rewritten(patch, old, changes, feed=feed, marks=marks)
    assert reason is None
    new = {key: v for key, v in {**old, **changes}.items() if v is not None}
    assert done.table() == new
    known = {key: v for key, v in changes.items() if key in old}
    inserted = [key for key, v in changes.items() if key not in old and v is not None]
    deleted = [key for key, v in known.items() if v is None]
    assert done.counts == RowCounts(len(inserted), len(known) - len(deleted), len(deleted))
    if not feed or not known:
        assert done.feed() == []
        return
    wanted = [("insert", key, new[key]) for key in inserted] + [("delete", key, old[key]) for key in deleted]
    for key in known.keys() - set(deleted):
        wanted += [("update_preimage", key, old[key]), ("update_postimage", key, new[key])]
    assert done.feed() == sorted(wanted)


def test_a_large_batch_marks_nothing(monkeypatch: pytest.MonkeyPatch):
    """Rows that only come count, too: a file that is no larger than the whole batch is written again."""
    old = {(0, letter): 1 for letter in "abcdefgh"}
    done, _ = rewritten(monkeypatch, old, {(0, "a"): 2}, feed=False, marks=True)
    assert (done.files, done.marks) == ([], {"f0": [0]})
    more: dict[Key, int | None] = {(2, f"new {number}"): 1 for number in range(7)}
    done, _ = rewritten(monkeypatch, old, {(0, "a"): 2, **more}, feed=False, marks=True)
    assert (done.files, done.marks) == (["f0"], {})


def test_a_commit_that_another_one_was_in_the_way_of(monkeypatch: pytest.MonkeyPatch):
    """What Delta says against it is the reason for a MERGE."""
    for changes in ({(0, "a"): 2}, {(0, "a"): None}):
        done, reason = rewritten(monkeypatch, {(0, "a"): 1}, changes, feed=False, marks=True, answer="no")  # type: ignore[arg-type]
        assert reason == "no"
        assert done.counts.total == 1
