"""Which files may have certain values: never is one left out that has some."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from headwater.delta_log.file_bounds import Bounds, Sought, comparable, table_files
from headwater.delta_log.versions import snapshot_files

NUMBERS = st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=1, max_size=8)


@given(held=NUMBERS, wanted=NUMBERS, between=st.booleans(), known=st.booleans())
def test_no_file_with_a_sought_value_is_left_out(
    held: list[int | None], wanted: list[int | None], between: bool, known: bool
) -> None:
    """A file that has one of the values is never left out, and one without any in its range is."""
    there = [one for one in held if one is not None]
    values = tuple(sorted({one for one in wanted if one is not None}))
    bounds = Bounds(min(there, default=None), max(there, default=None), held.count(None) if known else None)
    sought = Sought("k", values, None in wanted, between)
    inside = (
        [one for one in there if values and values[0] <= one <= values[-1]]
        if between
        else [one for one in there if one in values]
    )
    if inside or (None in held and None in wanted):
        assert bounds.may_have(sought)
    if (
        there
        and known
        and None not in wanted
        and values
        and (values[-1] < min(there) or values[0] > max(there))
    ):
        assert not bounds.may_have(sought)


def test_a_value_in_a_gap_is_in_no_file() -> None:
    """Of scattered values each is looked for, not the range that all of them span."""
    assert not Bounds(10, 20, 0).may_have(Sought("k", (1, 30)))
    assert Bounds(10, 20, 0).may_have(Sought("k", (1, 30), between=True))


@pytest.mark.parametrize("values", [("a",), (3,)])
def test_bounds_of_another_kind_leave_no_file_out(values: tuple[Any, ...]) -> None:
    """What can't be compared may be there."""
    other = "z" if isinstance(values[0], int) else 99
    assert Bounds(other, other, 0).may_have(Sought("k", values))


def _table(folder: Path, **options: Any) -> Path:
    for day in (1, 2, 3):
        rows = pa.table(
            {
                "id": pa.array([day * 10, day * 10 + 5], pa.int64()),
                "day": pa.array([date(2026, 1, day)] * 2),
                "name": [f"n{day}", None],
                "at": pa.array([datetime(2026, 1, day, 0, 0, 0, 1500, UTC)] * 2, pa.timestamp("us", "UTC")),
            }
        )
        write_deltalake(str(folder), rows, mode="append", **options)
    return folder


def test_files_of_a_table(tmp_path: Path) -> None:
    """Files are chosen by numbers, dates, texts and times, and by NULL; columns without bounds leave none out."""
    files = table_files(_table(tmp_path), None, ("ID", "day", "name", "at"))
    assert files is not None

    def chosen(column: str, *values: Any, null: bool = False) -> int:
        found = tuple(value for value in (comparable(one) for one in values) if value is not None)
        return sum(file.may_have([Sought(column, found, null)]) for file in files)

    assert chosen("id", 15) == 1
    assert chosen("ID", 12, 36) == 1
    assert chosen("day", date(2026, 1, 2), date(2026, 1, 3)) == 2
    assert chosen("name", "n1") == 1
    assert chosen("name", null=True) == 3
    assert chosen("at", datetime(2026, 1, 3, 0, 0, 0, 1500, UTC)) == 1
    assert chosen("other", 1) == 3
    assert files[0].records == 2


def test_partitions_and_versions(tmp_path: Path) -> None:
    """A partition's value is exact, and is known as the log writes it; a version has its own files."""
    files = table_files(_table(tmp_path, partition_by=["day"]), 1, ("id",))
    assert files is not None
    assert len(files) == 2
    days = {file.partition["day"] for file in files}
    assert days == {"2026-01-01", "2026-01-02"}
    second = comparable(date(2026, 1, 2))
    assert second is not None
    assert [file.partition for file in files if file.may_have([Sought("day", (second,))])] == [
        {"day": "2026-01-02"}
    ]


def test_what_can_not_be_said_again_is_left_to_delta(tmp_path: Path) -> None:
    """A partition whose path is not plain: nothing is said of the files."""
    rows = pa.table({"k": ["a b/ü"], "v": [1]})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["k"])
    assert table_files(tmp_path / "t", None, ()) is None
    assert table_files(tmp_path / "none", None, ()) is None
    write_deltalake(str(tmp_path / "u"), pa.table({"k": [{"a": 1}], "k.a": [2]}))
    assert table_files(tmp_path / "u", None, ()) is None


def test_days_that_python_does_not_know(tmp_path: Path) -> None:
    """After the year 9999: a table's files are listed all the same, and where such a day is sought, none is left out."""
    days = pa.array([2_932_897 + 10], pa.int32()).cast(pa.date32())
    write_deltalake(str(tmp_path / "t"), pa.table({"id": pa.array([1], pa.int64()), "day": days}))
    assert [file.records for file in snapshot_files(tmp_path / "t")] == [1]
    (file,) = table_files(tmp_path / "t", None, ("id",)) or ()
    assert not file.may_have([Sought("id", (2,))])
    assert table_files(tmp_path / "t", None, ("day",)) is None
