"""AUTO CDC, case by case: what each short sequence of events of one key comes to, in both types.

A case is written as batches (``|``) of events: ``a@1`` is an upsert of the name ``a`` at 1, ``D@2`` a delete at 2. All cases
of a type run side by side, each under a key of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.change_table import Changes, flow

# Rows are written as the names that are there.
LATEST = {
    "a@1,b@3 | c@2 | d@4 | D@2": "d",
    "a@1,b@3 | d@4 | D@5": "",
    "d@4 | D@5 | ghost@4": "",
    "D@2,b@3": "b",
    "D@1": "",
    "D@1 | a@2": "a",
    "a@1,b@3 | a@1,b@3": "b",
    # Two events of one sequence: a delete wins, then the greater row, in whatever order.
    "a@9,b@9": "b",
    "b@9 | a@9": "b",
    "a@9 | b@9": "b",
    "a@9,D@9": "",
    "a@9 | D@9": "",
    "D@9 | a@9": "",
    # A delete that is told again never removes a newer row.
    "a@1 | D@2 | b@3 | D@2": "b",
}
# Rows are written as name[start,end).
HISTORY = {
    "a@10,b@20": "a[10,20) b[20,)",
    "a@10,D@20": "a[10,20)",
    "a@10,b@20,D@30,c@40": "a[10,20) b[20,30) c[40,)",
    "a@10 | b@5": "b[5,10) a[10,)",
    "a@10,c@20 | b@15": "a[10,15) b[15,20) c[20,)",
    "a@10,b@30 | D@20": "a[10,20) b[30,)",
    "a@10,D@20 | D@15": "a[10,15)",
    "a@10,D@20 | D@15 | b@17": "a[10,15) b[17,20)",
    "D@20 | x@10": "x[10,20)",
    "D@20 | x@30": "x[30,)",
    "a@10,a@20": "a[10,)",
    "Alice@5,Alice@10,Alice@15 | Charlie@20 | Bob@12": "Alice[5,12) Bob[12,15) Alice[15,20) Charlie[20,)",
    "a@10,a@10": "a[10,)",
    "a@10,b@10": "b[10,)",
    "b@10 | a@10": "b[10,)",
    "a@10 | b@10": "b[10,)",
    "a@10,D@10": "",
    "D@10 | a@10": "",
    "a@10 | D@10": "",
    "a@10 | b@20 | a@10 | b@20": "a[10,20) b[20,)",
    "a@1,b@5,c@10,d@20 | x@7,y@15": "a[1,5) b[5,7) x[7,10) c[10,15) y[15,20) d[20,)",
}


def applied(table: Changes, cases: list[str]) -> None:
    """Apply the first batches of all cases, then the second ones, and so on."""
    split = [case.split(" | ") for case in cases]
    for step in range(max(map(len, split))):
        table.apply(
            event
            for key, batches in enumerate(split)
            if step < len(batches)
            for event in map(event_of(key), batches[step].split(","))
        )


def event_of(key: int) -> Any:
    """Reads an event of a key."""

    def read(text: str) -> tuple[Any, ...]:
        name, at = text.split("@")
        return (key, int(at), "D" if name == "D" else "U", None if name == "D" else name, None)

    return read


def by_key(cases: dict[str, str], rows: dict[int, list[str]]) -> dict[str, str]:
    """What was got, in the form of the cases."""
    return {case: " ".join(rows.get(key, [])) for key, case in enumerate(cases)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("left_out", [("op",), ("op", "at")], ids=["sequence kept", "sequence left out"])
def test_the_latest_row(spark: SparkSession, tmp_path: Path, left_out: tuple[str, ...]):
    """Type 1: each case leaves the row that its greatest event made, whether or not the table keeps the sequence."""
    table = Changes(spark, tmp_path, flow(except_columns=left_out))
    applied(table, list(LATEST))
    rows: dict[int, list[str]] = {}
    for row in table.rows("key"):
        rows.setdefault(row[0], []).append(row[-2])
    assert by_key(LATEST, rows) == LATEST


@pytest.mark.timeout(120)
def test_the_history(spark: SparkSession, tmp_path: Path):
    """Type 2: each case leaves the documented intervals; they never overlap, and none is empty."""
    table = Changes(spark, tmp_path, flow(history=True, except_columns=("op", "at")))
    applied(table, list(HISTORY))
    rows: dict[int, list[str]] = {}
    for key, name, _, start, end in table.rows('key, "__START_AT"'):
        assert end is None or start < end
        rows.setdefault(key, []).append(f"{name}[{start},{'' if end is None else end})")
    assert by_key(HISTORY, rows) == HISTORY


@pytest.mark.timeout(120)
def test_tracked_columns_and_nulls(spark: SparkSession, tmp_path: Path):
    """Type 2: a change in untracked columns stays in its row; a NULL that says nothing takes the value before it, which a
    late event may rewrite, and not over a delete.
    """
    options: dict[str, Any] = {"history": True, "except_columns": ("op", "at")}
    moves = Changes(spark, tmp_path / "moves", flow(**options, tracked_columns=("name",)))
    moves.apply(
        [
            (1, 10, "U", "alice", "100"), (1, 20, "U", "alice", "200"),
            (2, 39, "U", "alice", "39"), (2, 41, "U", "alice", "41"), (2, 42, "U", "bob", "42"), (2, 43, "U", "carol", "43"),
        ]
    )  # fmt: skip
    assert moves.rows('key, "__START_AT"') == [
        (1, "alice", "200", 10, None),
        (2, "alice", "41", 39, 42), (2, "bob", "42", 42, 43), (2, "carol", "43", 43, None),
    ]  # fmt: skip
    patches = Changes(spark, tmp_path / "patches", flow(**options, ignore_nulls=True))
    patches.apply(
        [
            (1, 10, "U", "a", "x"), (1, 20, "U", None, "y"),
            (2, 10, "U", "a", "x"), (2, 20, "D", None, None), (2, 30, "U", None, "y"),
            (3, 10, "U", "a", "x"), (3, 20, "U", None, None),
        ]
    )  # fmt: skip
    patches.apply([(1, 15, "U", "b", None)])
    assert patches.rows('key, "__START_AT"') == [
        (1, "a", "x", 10, 15), (1, "b", "x", 15, 20), (1, "b", "y", 20, None),
        (2, "a", "x", 10, 20), (2, None, "y", 30, None),
        (3, "a", "x", 10, None),
    ]  # fmt: skip
