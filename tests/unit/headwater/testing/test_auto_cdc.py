"""The oracle of AUTO CDC against rows worked out by hand: whoever tests with it must be able to trust it."""

from __future__ import annotations

import random
from typing import Any

from headwater.testing.auto_cdc import (
    expected_bitemporal,
    expected_from_snapshots,
    expected_scd1,
    expected_scd2,
)

COLUMNS = ("id", "name", "city", "at", "op")


def events(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows as events."""
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def is_delete(row: Any) -> bool:
    """Whether an event deletes."""
    return bool(row["op"] == "D")


WORKED = events(
    (124, "Raul", "Oaxaca", 1, "U"), (123, "Isabel", "Monterrey", 1, "U"), (125, "Mercedes", "Tijuana", 2, "U"),
    (126, "Lily", "Cancun", 2, "U"), (123, None, None, 6, "D"), (125, "Mercedes", "Guadalajara", 6, "U"),
    (125, "Mercedes", "Mexicali", 5, "U"), (123, "Isabel", "Chihuahua", 5, "U"),
)  # fmt: skip


def test_the_documented_example():
    """Both types come to the documented rows, in whatever order the events are given."""
    shuffled = random.Random(1).sample(WORKED, len(WORKED))
    options: dict[str, Any] = {
        "keys": ["id"],
        "sequence_by": "at",
        "apply_as_deletes": is_delete,
        "except_column_list": ("at", "op"),
    }
    assert [tuple(row.values()) for row in expected_scd1(shuffled, **options)] == [
        (124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun"),
    ]  # fmt: skip
    history = [tuple(row.values()) for row in expected_scd2(shuffled, **options)]
    assert history == [
        (123, "Isabel", "Monterrey", 1, 5), (123, "Isabel", "Chihuahua", 5, 6), (124, "Raul", "Oaxaca", 1, None),
        (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6), (125, "Mercedes", "Guadalajara", 6, None),
        (126, "Lily", "Cancun", 2, None),
    ]  # fmt: skip


def test_equal_sequences():
    """A delete wins over an upsert of the same sequence, and else the greater row."""
    same = events((1, "b", "x", 5, "U"), (1, "a", "y", 5, "U"))
    options: dict[str, Any] = {"keys": ["id"], "sequence_by": "at", "apply_as_deletes": is_delete}
    assert [row["name"] for row in expected_scd1(same, **options)] == ["b"]
    assert expected_scd1([*same, *events((1, None, None, 5, "D"))], **options) == []


def test_values_that_events_say_nothing_of():
    """An ignored NULL and a column that is not named both leave the value; a NULL that is named counts."""
    patches = events((1, "a", "x", 1, "U"), (1, None, "y", 2, "U"))
    ignoring = expected_scd1(patches, keys=["id"], sequence_by="at", ignore_null_updates=True)
    assert [(row["name"], row["city"]) for row in ignoring] == [("a", "y")]
    said: list[list[str] | None] = [None, ["name"]]
    named = [{**row, "said": names} for row, names in zip(patches, said, strict=True)]
    naming = expected_scd1(named, keys=["id"], sequence_by="at", columns_to_update="said")
    assert [(row["name"], row["city"]) for row in naming] == [(None, "x")]
    late = [*named, {**patches[0], "name": "b", "city": None, "at": 0, "said": ["name"]}]
    history = expected_scd2(late, keys=["id"], sequence_by="at", columns_to_update="said")
    assert [(row["name"], row["city"]) for row in history] == [("b", None), ("a", "x"), (None, "x")]
    same = [*late, {**patches[0], "city": "z", "at": 0, "said": ["city"]}]
    history = expected_scd2(same, keys=["id"], sequence_by="at", columns_to_update="said")
    assert (history[0]["name"], history[0]["city"]) == ("b", None)


def test_a_truncate():
    """Rows last written below it go; what came at it or after stays."""
    truncated = [*WORKED, *events((None, None, None, 5, "T"))]
    rows = expected_scd1(
        truncated,
        keys=["id"],
        sequence_by="at",
        apply_as_deletes=is_delete,
        apply_as_truncates=lambda row: row["op"] == "T",
    )
    assert [row["id"] for row in rows] == [125]


def test_snapshots():
    """A key that is missing ends, one that comes back starts again, one that stays the same goes on."""
    states: list[tuple[Any, list[dict[str, Any]]]] = [
        (1, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]),
        (2, [{"id": 2, "name": "b"}]),
        (5, [{"id": 1, "name": "a"}, {"id": 2, "name": "c"}]),
    ]
    latest = expected_from_snapshots(states, keys=["id"])
    assert latest == [{"id": 1, "name": "a"}, {"id": 2, "name": "c"}]
    history = expected_from_snapshots(states, keys=["id"], stored_as_scd_type=2)
    assert [tuple(row.values()) for row in history] == [
        (1, "a", 1, 2), (1, "a", 5, None), (2, "b", 1, 5), (2, "c", 5, None),
    ]  # fmt: skip


def believed(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The rows that events (a value, since when it is true, since when it is known; None deletes) of one key come to."""
    made = [{"id": 1, "v": value, "at": at, "known": known} for value, at, known in rows]
    expected = expected_bitemporal(
        random.Random(len(made)).sample(made, len(made)),
        keys=["id"], sequence_by="at", system_sequence_by="known", apply_as_deletes=lambda row: row["v"] is None,
        except_column_list=("at", "known"),
    )  # fmt: skip
    return [tuple(row.values())[1:] for row in expected]


def test_what_lakeflow_was_measured_to_give():
    """Three events in order give the five rows that were measured on Lakeflow: value, start, end, known from and to."""
    assert believed(("PENDING", 0, 1), ("ACTIVE", 2, 3), ("SUSPENDED", 4, 5)) == [
        ("PENDING", 0, None, 1, 3), ("PENDING", 0, 2, 3, None), ("ACTIVE", 2, None, 3, 5), ("ACTIVE", 2, 4, 5, None),
        ("SUSPENDED", 4, None, 5, None),
    ]  # fmt: skip


def test_corrections():
    """A late event corrects the history from when it is known on, a delete ends it, one of the same sequence takes its place."""
    assert believed(("v1", 0, 1), ("v2", 20, 21), ("v3", 10, 25), (None, 30, 31)) == [
        ("v1", 0, None, 1, 21), ("v1", 0, 20, 21, 25), ("v1", 0, 10, 25, None), ("v3", 10, 20, 25, None),
        ("v2", 20, None, 21, 31), ("v2", 20, 30, 31, None),
    ]  # fmt: skip
    assert believed(("a", 0, 1), ("b", 0, 2)) == [("a", 0, None, 1, 2), ("b", 0, None, 2, None)]
    assert believed(("a", 0, 1), ("a", 0, 5), ("a", 3, 4)) == [("a", 0, None, 1, None)]
