"""Groups of new rows in a view: merged by Delta or written into the files that have them, they are the groups of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import Row, or_null
from tests.unit.headwater_spark.plain_merge import PlainTable
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater_spark.delta_writes import delta_merge
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, RowCounts
from headwater_spark.views import merged_groups as module
from headwater_spark.views import rewritten_groups
from headwater_spark.views.appended_rows import Merging
from headwater_spark.views.merged_groups import MergedGroups
from headwater_spark.views.rewritten_groups import rewrite_groups

NAMES = ("key", "n", "total", "low", "high")
SCHEMA = T.StructType([T.StructField(name, T.LongType()) for name in NAMES])
FORM = pa.schema([(name, pa.int64()) for name in NAMES])
HOW = (Merging.KEY, Merging.COUNT, Merging.SUM, Merging.LEAST, Merging.GREATEST)
BATCH = BatchTransaction("p.f@refresh", 3, "{}")
ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 4)), st.one_of(st.none(), st.integers(-2, 2))), max_size=6
)


def groups(rows: list[tuple[int | None, int | None]]) -> list[Row]:
    """The groups of rows of a key and a value."""
    made = []
    for key in dict.fromkeys(key for key, _ in rows):
        values = [value for own, value in rows if own == key and value is not None]
        total = (sum(values), min(values), max(values)) if values else (None, None, None)
        made.append(dict(zip(NAMES, (key, sum(own == key for own, _ in rows), *total), strict=True)))
    return made


def in_order(rows: list[Row]) -> list[str]:
    return sorted(repr([row[name] for name in NAMES]) for row in rows)


@given(before=ROWS, new=ROWS)
def test_a_merge(before: list[Any], new: list[Any]):
    """The groups of the old rows and those of the new ones make the groups of all; NULL is a key, and a sum over nothing is NULL."""
    session = SimpleNamespace(conf=Conf())
    table = PlainTable(SCHEMA, groups(before), session=session)
    with pytest.MonkeyPatch.context() as patch:
        plain_functions(patch, module, delta_merge)
        patch.setattr(module, "rewrite_groups", lambda *_: False)
        patch.setattr(module, "in_own_session", lambda rows: rows)
        patch.setattr(module, "DeltaTable", SimpleNamespace(forPath=lambda *_: table))
        rows: Any = Frame(groups(new), NAMES, session=session)
        MergedGroups(Path("t"), list(zip(NAMES, HOW, strict=True))).write(rows, BATCH)
    assert in_order(table.rows) == in_order(groups([*before, *new]))


class Rewrite:
    """In the place of a transaction that replaces files of a table."""

    def __init__(self, table: Path) -> None:
        self.table, self.files = table, list[Any]()
        self.written: list[Row] = []
        self.counts = RowCounts(0, 0, 0)
        self.answer: str | None = None

    @contextmanager
    def open(self, _: Any, __: Path, version: int, files: Any, ___: Any) -> Iterator[Any]:
        assert version == DeltaTable(str(self.table)).version()
        self.files = files
        yield self

    @property
    def rows(self) -> Frame:
        from pyarrow import parquet

        parts = [parquet.read_table(self.table / file.path).to_pylist() for file in self.files]
        return Frame([row for part in parts for row in part], NAMES)

    def commit(self, rows: Any, counts: RowCounts, _: Any) -> str | None:
        self.written, self.counts = rows.rows, counts
        return self.answer

    def after(self, before: list[Row]) -> list[Row]:
        """The rows of the table once the files are replaced."""
        gone = in_order(self.rows.rows)
        stay = [row for row in before if in_order([row])[0] not in gone]
        return [*stay, *(row for row in self.written if row.get(CHANGE_TYPE) is None)]


class Groups(Frame):
    """Groups that come to the driver."""

    def limit(self, number: int) -> Any:
        rows = self.rows[:number]
        return SimpleNamespace(toArrow=lambda: pa.Table.from_pylist(rows, schema=FORM))


def rewritten(
    monkeypatch: pytest.MonkeyPatch, table: Path, before: list[Row], new: list[Row], *, feed: bool
) -> tuple[Rewrite, bool]:
    """Groups, written into a view that has three in a file."""
    for place in range(0, len(before), 3):
        properties = {"delta.enableChangeDataFeed": str(feed).lower()}
        part = pa.Table.from_pylist(before[place : place + 3], schema=FORM)
        write_deltalake(str(table), part, mode="append", configuration=properties)
    done = Rewrite(table)
    plain_functions(monkeypatch, rewritten_groups, module, delta_merge)
    monkeypatch.setattr(rewritten_groups, "file_rewrite", done.open)
    monkeypatch.setattr(
        rewritten_groups, "local_frame", lambda _, rows, __: Frame(rows.to_pylist(), rows.column_names)
    )
    rows: Any = Groups(new, NAMES)
    values: Any = {name: module._merged(name, how) for name, how in zip(NAMES[1:], HOW[1:], strict=True)}
    return done, rewrite_groups(table, rows, ["key"], values, BATCH)


@settings(max_examples=25)
@given(before=ROWS.filter(bool), new=ROWS.filter(bool), feed=st.booleans())
def test_a_rewrite(tmp_path_factory: Any, before: list[Any], new: list[Any], feed: bool):
    """It gives the same; only files that have one of the groups are read, and the feed says what was and what is."""
    old, fresh = groups(before), groups(new)
    with pytest.MonkeyPatch.context() as patch:
        done, written = rewritten(patch, tmp_path_factory.mktemp("view"), old, fresh, feed=feed)
        assert written
        assert in_order(done.after(old)) == in_order(groups([*before, *new]))
        keys = {row["key"] for row in fresh}
        assert all(keys & {row["key"] for row in one} for one in files_of(done))
    known = sum(row["key"] in {one["key"] for one in old} for row in fresh)
    assert done.counts == RowCounts(len(fresh) - known, known, 0)
    kinds = [row[CHANGE_TYPE] for row in done.written if row.get(CHANGE_TYPE) is not None]
    images = ["update_postimage", "update_preimage"] * known + ["insert"] * (len(fresh) - known)
    assert sorted(kinds) == (sorted(images) if feed and known else [])
    before_images = [row for row in done.written if row.get(CHANGE_TYPE) == "update_preimage"]
    assert set(in_order(before_images)) <= set(in_order(old))


def files_of(done: Rewrite) -> list[list[Row]]:
    files, parts = done.files, []
    for file in files:
        done.files = [file]
        parts.append(done.rows.rows)
    done.files = files
    return parts


def test_what_is_left_to_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """More groups than come to the driver, another commit in the way, and columns of another type: nothing is written here."""
    old = groups([(1, 1), (2, 2)])
    monkeypatch.setattr(rewritten_groups, "LOCAL_ROWS", 2)
    assert rewritten(monkeypatch, tmp_path / "a", old, groups([(1, 1), (3, 1)]), feed=False)[1]
    assert not rewritten(monkeypatch, tmp_path / "b", old, groups([(1, 1), (3, 1), (4, 1)]), feed=False)[1]
    monkeypatch.setattr(Rewrite, "commit", lambda *_: "another commit was in the way")
    assert not rewritten(monkeypatch, tmp_path / "c", old, groups([(1, 1)]), feed=False)[1]
    odd: Any = Groups(groups([(1, 1)]), NAMES, types={"total": T.StringType()})
    assert not rewrite_groups(tmp_path / "a", odd, ["key"], {}, BATCH)


def test_counts_add_up(monkeypatch: pytest.MonkeyPatch):
    """A sum or a count of a group that is there: NULL on either side leaves the other."""
    plain_functions(monkeypatch, module)
    merged: Any = module._merged("total", Merging.SUM)
    for there, new, both in ((1, 2, 3), (None, 2, 2), (1, None, 1), (None, None, None)):
        assert or_null(merged.of({"t": {"total": there}, "s": {"total": new}})) == both
