"""A part of a view that is written in one pass: the rows that leave are those that meet its condition, and no other."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater.delta_log.file_bounds import Sought
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE
from headwater_spark.views import part_write as module
from headwater_spark.views.part_write import PartWrite

BATCH = BatchTransaction("p.f@refresh", 3, "{}")
MEETS = "(day = 1)"
# Rows that are there: one of the part, one of another, and one of which it is not known.
THERE = [
    {"day": 1, "v": 1, MEETS: True},
    {"day": 2, "v": 2, MEETS: False},
    {"day": None, "v": 3, MEETS: None},
]
NEW = [{"day": 1, "v": 7}]
TYPES: dict[str, T.DataType] = {"day": T.LongType(), "v": T.LongType()}


class Written:
    """What a part write does: ``put`` in one pass, or left to Delta's own command."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: str | None = None) -> None:
        self.put_rows: Frame | None = None
        self.files: list[Any] = []
        self.plain = 0
        self.append: bool | None = None
        plain_functions(monkeypatch, module)
        opened = SimpleNamespace(rows=Frame([dict(row) for row in THERE], ["day", "v", MEETS]), put=self._put)

        def begin(_: Any, __: Any, ___: Any, files: Any, ____: Any, *, append: bool) -> Any:
            self.files, self.append = [file.path for file in files], append
            return nullcontext(answer or opened)

        monkeypatch.setattr(module, "file_rewrite", begin)
        target = SimpleNamespace(write=lambda *_: setattr(self, "plain", self.plain + 1))
        monkeypatch.setattr(PartWrite, "_plain", target)

    def _put(self, rows: Any, condition: str | None, _: Any) -> None:
        self.put_rows = rows

    def rows(self) -> list[tuple[Any, ...]]:
        assert self.put_rows is not None
        return [tuple(row.values()) for row in self.put_rows.rows]


def table_of(path: Path, *, feed: bool = False) -> Path:
    """A view with a file for each day."""
    for day in (1, 2):
        rows = pa.table({"day": pa.array([day], pa.int64()), "v": pa.array([day], pa.int64())})
        properties = {"delta.enableChangeDataFeed": str(feed).lower()}
        write_deltalake(str(path), rows, mode="append", configuration=properties)
    return path


def write(table: Path, types: dict[str, T.DataType] = TYPES, **more: Any) -> None:
    rows: Any = Frame([dict(row) for row in NEW], ["day", "v"], types=types)
    PartWrite(table, **more).write(rows, BATCH)


PART = {"condition": "day = 1", "sought": (Sought("day", (1,)),)}


def test_rows_that_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A row of which the condition is not known stays; only files that may have rows of the part are read."""
    written = Written(monkeypatch)
    write(table_of(tmp_path), **PART)
    assert sorted(map(repr, written.rows())) == sorted(map(repr, [(2, 2), (None, 3), (1, 7)]))
    assert (len(written.files), written.append, written.plain) == (1, False, 0)


def test_rows_of_the_change_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A row that leaves stands there as deleted, and not in the table; a new one in both."""
    written = Written(monkeypatch)
    write(table_of(tmp_path, feed=True), **PART)
    assert written.put_rows is not None
    assert written.put_rows.columns == ["day", "v", CHANGE_TYPE]
    wanted = [(1, 1, "delete"), (2, 2, None), (None, 3, None), (1, 7, None), (1, 7, "insert")]
    assert sorted(map(repr, written.rows())) == sorted(map(repr, wanted))


def test_rows_that_only_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a condition no file is read."""
    written = Written(monkeypatch)
    write(table_of(tmp_path))
    assert (written.rows(), written.files, written.append) == ([(1, 7)], [], True)


@pytest.mark.parametrize("why", ["another writer", "types", "files", "features"])
def test_what_is_left_to_delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str):
    """A table that has moved on, that has other types or features, or too many files of the part: nothing is put here."""
    written = Written(monkeypatch, "the table has moved on" if why == "another writer" else None)
    monkeypatch.setattr(module, "MAX_FILES", 0 if why == "files" else 500)
    if why == "features":
        monkeypatch.setattr(module, "is_plain_table", lambda _: False)
    write(table_of(tmp_path), {**TYPES, "v": T.IntegerType()} if why == "types" else TYPES, **PART)
    assert (written.plain, written.put_rows) == (1, None)
