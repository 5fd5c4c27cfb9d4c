"""Rows are looked up by key from a table's log and files: never fewer than there are, and a reason where Spark has to read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import types as T
from tests.delta_vectors import enable_vectors, inline, with_vector

from headwater.delta_log.commits import commit_file
from headwater.delta_log.deletion_vectors import serialized
from headwater_spark.auto_cdc.on_driver import look_up, numbered_scan
from headwater_spark.auto_cdc.on_driver.look_up import (
    MatchingRows,
    find_rows,
    has_all_keys,
    is_plain_table,
    keys_about,
    may_be_written_from_the_driver,
)

SCHEMA = T.StructType(
    [T.StructField("key", T.LongType()), T.StructField("part", T.StringType()), T.StructField("v", T.IntegerType())]
)  # fmt: skip
FORM = pa.schema([("key", pa.int64()), ("part", pa.string()), ("v", pa.int32())])
Row = tuple[int | None, str | None, int]


def in_arrow(rows: list[Row]) -> Any:
    return pa.Table.from_pylist([dict(zip(FORM.names, row, strict=True)) for row in rows], schema=FORM)


def written(path: Path, *files: list[Row], **options: Any) -> Path:
    """A table with such files."""
    for rows in files:
        write_deltalake(str(path), in_arrow(rows), mode="append", **options)
    return path


def sought(*keys: tuple[int, str]) -> Any:
    return in_arrow([(*key, 0) for key in keys]).select(["key", "part"])


def find(path: Path, *keys: tuple[int, str]) -> MatchingRows | str:
    return find_rows(path, ("key", "part"), sought(*keys), SCHEMA)


def rows_of(found: MatchingRows | str) -> set[Row]:
    assert isinstance(found, MatchingRows), found
    return {tuple(row.values()) for row in found.rows.to_pylist()}


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 3)), st.sampled_from([None, "", "a", "é"]), st.integers(0, 9)
    ),
    min_size=1,
    max_size=5,
)
KEYS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "é"])), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(files=st.lists(ROWS, min_size=1, max_size=3), keys=KEYS)
def test_no_row_is_missed(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Row]], keys: list[tuple[int, str]]
):
    """All rows of the keys are among those that are looked up, each with its file; and a table has all keys only if it does."""
    path = written(tmp_path_factory.mktemp("t") / "t", *files)
    found = find(path, *keys)
    rows = rows_of(found)
    wanted = {row for file in files for row in file if row[:2] in keys}
    assert wanted <= rows <= {row for file in files for row in file}
    assert isinstance(found, MatchingRows)
    assert found.obstacle is None
    assert found.version == len(files) - 1
    by_file = {
        name: {tuple(row.values()) for row in parquet.read_table(path / name).to_pylist()}
        for name in found.files
    }
    for row, file in zip(found.rows.to_pylist(), found.file_of.to_pylist(), strict=True):
        assert tuple(row.values()) in by_file[file]
    assert has_all_keys(path, ("key", "part"), sought(*keys)) == ({row[:2] for row in wanted} == set(keys))
    assert keys_about(path, ("key", "part"), sought(*keys)).column_names == ["key", "part"]


DELETED = st.lists(st.sets(st.integers(0, 4)), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(files=st.lists(ROWS, min_size=1, max_size=3), keys=KEYS, deleted=DELETED)
def test_deleted_rows_are_left_out(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[Row]],
    keys: list[tuple[int, str]],
    deleted: list[set[int]],
):
    """In a table with deletion vectors the rows of the keys are found that are not deleted, whatever row group they are in,
    each with its number in its file; and each file says how many rows it has left.
    """
    path = tmp_path_factory.mktemp("t") / "t"
    written(path, *files, writer_properties=WriterProperties(max_row_group_size=2))
    gone = [{n for n in rows if n < len(file)} for file, rows in zip(files, deleted, strict=False)]
    for version, rows in enumerate(gone):
        if rows:
            with_vector(path, version, inline(serialized(sorted(rows)), len(rows)))
    enable_vectors(path)
    found = find(path, *keys)
    rows = rows_of(found)
    left = [
        row for file, rows in zip(files, gone, strict=True) for n, row in enumerate(file) if n not in rows
    ]
    wanted = {row for row in left if row[:2] in keys}
    assert wanted <= rows <= set(left)
    assert isinstance(found, MatchingRows)
    in_file = {
        name: [tuple(r.values()) for r in parquet.read_table(path / name).to_pylist()] for name in found.files
    }
    places = list(zip(found.file_of.to_pylist(), found.row_in_file.to_pylist(), strict=True))
    assert len(set(places)) == len(places)
    times = Counter(tuple(row.values()) for row in found.rows.to_pylist())
    assert {row: times[row] for row in wanted} == {row: left.count(row) for row in wanted}
    for row, (file, number) in zip(found.rows.to_pylist(), places, strict=True):
        assert in_file[file][number] == tuple(row.values())
    for name, file in found.files.items():
        assert file.rows + file.deleted == len(in_file[name])
        assert file.entry is not None
        assert file.deleted == (file.entry.get("deletionVector") or {}).get("cardinality", 0)
    assert has_all_keys(path, ("key", "part"), sought(*keys)) == ({row[:2] for row in wanted} == set(keys))
    assert keys_about(path, ("key", "part"), sought(*keys)).column_names == ["key", "part"]


@pytest.mark.parametrize("gone", range(4))
def test_a_row_that_is_deleted_in_any_row_group(tmp_path: Path, gone: int):
    """A vector counts the rows of the whole file, not of the group that is read."""
    rows: list[Row] = [(1, "a", number) for number in range(4)]
    path = written(tmp_path / "t", rows, writer_properties=WriterProperties(max_row_group_size=2))
    with_vector(path, 0, inline(serialized([gone]), 1))
    assert rows_of(find(path, (1, "a"))) == {*rows} - {rows[gone]}


def test_vectors_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A vector that does not fit its file, or a file that the log does not lead back to, is Spark's to read; rows are numbered
    only where the table takes new vectors.
    """
    path = written(tmp_path / "t", [(1, "a", 1), (2, "a", 1)], [(1, "b", 1)])
    vector = inline(serialized([0]), 1)
    with_vector(path, 0, vector)
    found = find(path, (1, "a"), (2, "a"), (1, "b"))
    assert rows_of(found) == {(2, "a", 1), (1, "b", 1)}
    assert isinstance(found, MatchingRows)
    assert found.row_in_file is None
    with_vector(path, 0, {**vector, "cardinality": 2})
    assert find(path, (1, "a")) == "a deletion vector is not of a kind that is read here"
    with_vector(path, 0, vector)
    entries = numbered_scan.file_entries
    another = {"size": 1}
    monkeypatch.setattr(numbered_scan, "file_entries", lambda *of: dict.fromkeys(entries(*of), another))
    assert find(path, (1, "a")) == "the log does not show a file's entry"
    monkeypatch.setattr(numbered_scan, "file_entries", lambda *_: {})
    assert find(path, (1, "a")) == "the log does not show a file's entry"


@pytest.mark.parametrize("rows", [1, 3])
def test_a_file_with_another_number_of_rows_than_the_log_says(tmp_path: Path, rows: int):
    """Rows of such a file can't be numbered: Spark has to read it, where the table has deletion vectors."""
    path = written(tmp_path / "t", [(1, "a", 1), (2, "a", 1)], [(1, "b", 1)])
    with_vector(path, 1, inline(serialized([0]), 1))

    def change(action: dict[str, Any]) -> None:
        if json.loads(action.get("add", {}).get("stats") or "{}").get("numRecords") == 2:
            action["add"]["stats"] = json.dumps({**json.loads(action["add"]["stats"]), "numRecords": rows})

    edited(path, change)
    assert find(path, (1, "a")) == "a deletion vector is not of a kind that is read here"


def test_files_without_the_keys_are_not_read(tmp_path: Path):
    """Files whose least and greatest keys leave the batch's out count for nothing; those that touch them are read."""
    path = written(tmp_path / "t", [(1, "a", 1), (5, "a", 1)], [(5, "b", 2), (9, "b", 2)], [(20, "a", 3)])
    found = find(path, (5, "a"), (5, "b"))
    assert isinstance(found, MatchingRows)
    assert rows_of(found) == {(5, "a", 1), (5, "b", 2)}
    assert len(found.files) == 2
    for other in {Path(uri).name for uri in DeltaTable(str(path)).file_uris()} - set(found.files):
        (path / other).unlink()
    assert rows_of(find(path, (5, "a"))) == {(5, "a", 1)}


@pytest.mark.parametrize("known", [None, {"minValues": {"part": "a"}, "maxValues": {"part": "b"}}])
def test_files_whose_bounds_are_not_known(tmp_path: Path, known: dict[str, Any] | None):
    """A file without statistics of a key may have any; without a number of rows, Spark has to read the table."""
    path = written(tmp_path / "t", [(1, "a", 1), (2, "b", 1)], [(7, "a", 1)])

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["stats"] = None if known is None else json.dumps({"numRecords": 2, **known})

    edited(path, change)
    if known is None:
        assert find(path, (1, "a")) == "a file's number of rows is not known"
        assert not has_all_keys(path, ("key", "part"), sought((1, "a")))
    else:
        assert rows_of(find(path, (1, "a"), (2, "b"))) == {(1, "a", 1), (2, "b", 1)}


def test_a_file_of_another_writers_path(tmp_path: Path):
    """Its rows count, and it is not rewritten: how its name is spelled in the log is not ours to guess."""
    path = written(tmp_path / "t", [(1, "a", 1)], [(2, "a", 1)])

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            (path / action["add"]["path"]).rename(path / "x y.parquet")
            action["add"]["path"] = "x%20y.parquet"

    edited(path, change)
    found = find(path, (1, "a"))
    assert isinstance(found, MatchingRows)
    assert rows_of(found) == {(1, "a", 1)}
    assert found.obstacle == "a file's path is not a plain one"
    other = find(path, (2, "a"))
    assert isinstance(other, MatchingRows)
    assert other.obstacle is None


def test_bounds_of_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """More rows, bytes or files than the bounds say are Spark's; as many are not."""
    path = written(tmp_path / "t", [(1, "a", 1), (2, "a", 1)], [(1, "b", 1)], [(9, "b", 1)])
    for name, least, reason in (
        ("MAX_SCANNED_ROWS", 3, "too many rows share files with the batch's keys"),
        ("_MANY_FILES", 3, "the table has more than 2 files"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(look_up, name, least)
            assert isinstance(find(path, (1, "a"), (1, "b")), MatchingRows)
            patched.setattr(look_up, name, least - 1)
            assert find(path, (1, "a"), (1, "b")) == reason
    monkeypatch.setattr(look_up, "MAX_SCANNED_BYTES", 10)
    assert find(path, (1, "a")) == "too many rows share files with the batch's keys"
    assert rows_of(find(path, (50, "a"))) == set()


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The table with other actions in its first commit."""
    file = commit_file(path, 0)
    actions = [json.loads(line) for line in file.read_text().split("\n") if line]
    for action in actions:
        change(action)
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return path


def protocol(reader: int, writer: int, **features: list[str]) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": reader, "minWriterVersion": writer, **features}

    return change


def column(metadata: Mapping[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][2]["metadata"] = dict(metadata)
            action["metaData"]["schemaString"] = json.dumps(schema)

    return change


VECTORS = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
MORE = ["deletionVectors", "v2Checkpoint"]
TRACKED = ["deletionVectors", "rowTracking"]
SIMPLE = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "clustering", "domainMetadata"]


@pytest.mark.parametrize(
    ("change", "reason", "obstacle"),
    [
        (VECTORS, None, None),
        (protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=TRACKED), None, "the table has rowTracking"),
        (protocol(3, 7, readerFeatures=MORE, writerFeatures=MORE), "the table has v2Checkpoint", "the table has v2Checkpoint"),
        (protocol(3, 7, readerFeatures=[], writerFeatures=[]), "the table has a feature that readers differ in", None),
        (protocol(1, 7, writerFeatures=["rowTracking", "domainMetadata"]), None, "the table has rowTracking"),
        (protocol(1, 7, writerFeatures=SIMPLE), None, None),
        (protocol(1, 4), None, None),
        (protocol(1, 5), None, "the table needs writers of version 5"),
        (column({"delta.generationExpression": "key + 1"}), None, "a column is computed, or has a default"),
        (column({"comment": "said"}), None, None),
    ],
)  # fmt: skip
def test_features_of_tables(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], reason: str | None, obstacle: str | None
):
    """What readers differ in is Spark's to read; what has more to update than rows is not rewritten."""
    path = edited(written(tmp_path / "t", [(1, "a", 1)]), change)
    found = find(path, (1, "a"))
    if reason is not None:
        assert found == reason
        assert keys_about(path, ("key", "part"), sought((1, "a"))) is None
        assert not has_all_keys(path, ("key", "part"), sought((1, "a")))
    else:
        assert isinstance(found, MatchingRows)
        assert found.obstacle == obstacle
        assert rows_of(found) == {(1, "a", 1)}
    assert may_be_written_from_the_driver(path) == (obstacle is None and reason is None)
    # A view's files are not looked through for vectors.
    assert is_plain_table(path) == (obstacle is None and reason is None and change is not VECTORS)


def test_tables_that_spark_reads(tmp_path: Path):
    """Partitions, no file, types that readers differ in, and keys that are not there or can't be searched by: each has its reason."""
    partitioned = written(tmp_path / "parts", [(1, "a", 1)], partition_by=["part"])
    assert find(partitioned, (1, "a")) == "the table is partitioned"
    assert not is_plain_table(partitioned)
    empty = written(tmp_path / "empty", [])
    assert find(empty, (1, "a")) == "the table has no file yet"
    assert not has_all_keys(empty, ("key", "part"), sought((1, "a")))
    path = written(tmp_path / "t", [(1, "a", 1)])
    local_time = T.StructType([*SCHEMA, T.StructField("at", T.TimestampNTZType())])
    assert (
        find_rows(path, ("key", "part"), sought((1, "a")), local_time)
        == "a column's type is not read alike by all readers"
    )
    no_key = "no key is of a type that files are searched by"
    assert find_rows(path, ("other",), sought((1, "a")), SCHEMA) == no_key
    assert find_rows(path, ("key", "other"), sought((1, "a")), SCHEMA) == no_key
    numbers = T.StructType([T.StructField("key", T.DoubleType()), *SCHEMA.fields[1:]])
    assert find_rows(path, ("key",), sought((1, "a")), numbers) == no_key
    # One that can be searched by is enough: rows of other keys may come along.
    assert (
        rows_of(find_rows(path, ("KEY", "part"), sought((1, "b")).rename_columns(["KEY", "part"]), numbers))
        == set()
    )
    assert rows_of(find_rows(path, ("key", "part"), sought((7, "a")), numbers)) == {(1, "a", 1)}


def test_dates_are_searched(tmp_path: Path):
    """Statistics of dates are compared as dates, before 1970 too."""
    form = pa.schema([("key", pa.date32())])
    path, days = tmp_path / "t", [date(1500, 1, 1), date(1969, 12, 31), date(2026, 3, 1)]
    for day in days:
        write_deltalake(
            str(path), pa.table({"key": pa.array([day], pa.date32())}, schema=form), mode="append"
        )
    schema = T.StructType([T.StructField("key", T.DateType())])
    for day in days:
        found = find_rows(path, ("key",), pa.table({"key": pa.array([day], pa.date32())}), schema)
        assert isinstance(found, MatchingRows)
        assert found.rows["key"].to_pylist() == [day]
        assert len(found.files) == 1
