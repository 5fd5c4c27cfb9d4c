"""Who looks for the rows of a source that changed, and who goes by another view's look."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater_spark.views import shared_changes
from headwater_spark.views.known_rows import SIGN, KnownRows
from headwater_spark.views.shared_changes import MAX_COLUMNS, SharedChanges, shareable, small_rows
from headwater_spark.views.shared_changes import _looked_for as looked_for

SALES = Path("/w/sales")
LEAF: Any = SimpleNamespace(folder=SALES, table_id="t")
CHANGE = SourceChange(ChangeKind.CHANGED, 1, 2)
ROWS = KnownRows(
    StructType([StructField("n", LongType()), StructField("s", StringType())]),
    pa.table([pa.array([1, 2]), pa.array(["a", "b"]), pa.array([1, -1])], ["n", "s", SIGN]),
)


class Looks:
    """Stands for the job that looks; ``fails``: how many of the first ones fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: KnownRows | None, fails: int = 0) -> None:
        self.made, self._rows, self._fails = 0, rows, fails
        monkeypatch.setattr(shared_changes, "_looked_for", self._look)

    def _look(self, *arguments: Any) -> KnownRows | None:
        self.made += 1
        self.columns = arguments[-1]
        if self.made <= self._fails:
            raise OSError("gone")
        return self._rows


def shared(**readers: int) -> SharedChanges:
    """What an update begins with."""
    changes = SharedChanges()
    changes.expect({Path("/w") / name: count for name, count in readers.items()})
    return changes


def rows(changes: SharedChanges, *columns: str, change: SourceChange = CHANGE) -> KnownRows | None:
    """What a view gets that uses these columns."""
    session: Any = None
    return changes.rows(session, LEAF, change, columns)


def test_one_look_is_for_all_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, and at the same time; another range of versions is another look."""
    looks, changes = Looks(monkeypatch, ROWS), shared(sales=8)
    barrier = threading.Barrier(8)

    def ask(number: int) -> int:
        barrier.wait()
        got = rows(changes, "n" if number % 2 else "s")
        assert got is not None
        return len(got)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [2] * 8
    assert looks.made == 1
    rows(changes, "n", change=SourceChange(ChangeKind.CHANGED, 2, 3))
    assert looks.made == 2


def test_a_source_of_one_view_is_its_own_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the columns that it uses, and no others; so does each view outside of an update."""
    looks = Looks(monkeypatch, ROWS)
    assert rows(shared(sales=1), "n") is None
    assert rows(SharedChanges(), "n") is None
    assert looks.made == 0


@pytest.mark.parametrize(("found", "columns"), [(None, ["n"]), (ROWS, ["n", "tags"]), (ROWS, [])])
def test_what_is_not_shared(
    monkeypatch: pytest.MonkeyPatch, found: KnownRows | None, columns: list[str]
) -> None:
    """Too many rows, columns that don't pass through Arrow as they are, and views that use no column."""
    Looks(monkeypatch, found)
    assert rows(shared(sales=2), *columns) is None


def test_too_many_rows_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next view knows that each has to look itself."""
    looks, changes = Looks(monkeypatch, None), shared(sales=2)
    assert rows(changes, "n") is rows(changes, "n") is None
    assert looks.made == 1


def test_a_look_that_fails_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The view whose look it was fails; the next one looks again."""
    looks, changes = Looks(monkeypatch, ROWS, fails=1), shared(sales=2)
    with pytest.raises(OSError, match="gone"):
        rows(changes, "n")
    assert rows(changes, "n") is not None
    assert looks.made == 2


def test_the_next_round_knows_nothing_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked for is let go."""
    looks, changes = Looks(monkeypatch, ROWS), shared(sales=2)
    rows(changes, "n")
    changes.expect({SALES: 2})
    rows(changes, "n")
    assert looks.made == 2


def test_a_view_that_reads_a_table_twice_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For both of its reads, in the columns that it uses; a look for several views is in all columns."""
    looks, changes = Looks(monkeypatch, ROWS), SharedChanges()
    changes.expect({SALES: 2}, frozenset({"n", "s"}))
    assert rows(changes, "n") is not None
    assert rows(changes, "s") is not None
    assert (looks.made, looks.columns) == (1, {"n", "s"})
    changes.expect({SALES: 2})
    rows(changes, "n")
    assert looks.columns is None


def test_columns_that_are_shared() -> None:
    """Plain ones; neither texts of a fixed length, whose blanks Spark adds, nor values that can't be compared."""
    fixed = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
    fields = [
        StructField("n", LongType(), nullable=False),
        StructField("c", StringType(), metadata=fixed),
        StructField("tags", ArrayType(StringType())),
        StructField("m", MapType(StringType(), StringType())),
        StructField("s", StringType(), metadata={"comment": "plain"}),
    ]
    assert shareable(fields) == [StructField("n", LongType()), StructField("s", StringType())]
    assert shareable([StructField(f"n{number}", LongType()) for number in range(MAX_COLUMNS + 1)]) == []


def file(size: int, rows: int | None) -> dict[str, Any]:
    """A file of a change."""
    return {"path": "f", "size": size, "stats": None if rows is None else json.dumps({"numRecords": rows})}


@pytest.mark.parametrize(
    ("added", "removed", "small"),
    [
        ([file(9_000_000, 100_000)], [file(9_000_000, None)], True),
        ([file(9_000_000, 1_000)], [file(9_000_000, None)], False),
        ([], [file(9_000_000, None)], False),
        ([], [file(90_000, None)], True),
        ([file(5_000, 1)], [], True),
    ],
)
def test_rows_that_are_small_enough(added: list[Any], removed: list[Any], small: bool) -> None:
    """By the files whose rows are known; files of which none is known are taken only where they are small themselves."""
    assert small_rows(SourceChange(ChangeKind.CHANGED, 1, 2, tuple(added), tuple(removed))) is small


@pytest.mark.parametrize(("fields", "small"), [([], True), (["n"], False)])
def test_what_is_not_looked_for(monkeypatch: pytest.MonkeyPatch, fields: list[str], small: bool) -> None:
    """Rows of which no column can be shared, and more rows than a driver takes: no query is made for them."""
    monkeypatch.setattr(shared_changes, "column_fields", lambda _: [])
    monkeypatch.setattr(shared_changes, "shareable", lambda _: fields)
    monkeypatch.setattr(shared_changes, "small_rows", lambda _: small)
    monkeypatch.setattr(shared_changes, "changes_between", lambda *_: pytest.fail("looked"))
    nothing: Any = None
    assert looked_for(nothing, nothing, nothing, None) is None
