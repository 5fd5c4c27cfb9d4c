"""What a change flow asks for, against the columns of its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import on_plain_rows
from tests.unit.headwater_spark.plain_rows import Frame

from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.change_flow import ChangeFlow
from headwater_spark.auto_cdc.change_columns import ChangeColumns, change_columns

# What an expression gives is in the column of its text.
CONDITIONS = ("is gone", "is empty")
NAMES = ("Key", "name", "city", "at", "sets", *CONDITIONS)
TYPES: dict[str, T.DataType] = {
    **dict.fromkeys(NAMES, T.StringType()), **dict.fromkeys(CONDITIONS, T.BooleanType()), "sets": T.ArrayType(T.StringType()),
}  # fmt: skip
KEPT: dict[str, Any] = {"except_columns": ("sets", *CONDITIONS)}


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def columns(**arguments: Any) -> ChangeColumns:
    frame: Any = Frame([], NAMES, types=TYPES)
    given = {"keys": ("KEY",), "sequence_by": "at", **KEPT, **arguments}
    return change_columns(ChangeFlow("s", **given), frame, "main.py:1")


@pytest.mark.parametrize(
    ("arguments", "names", "sequence"),
    [
        ({}, ["Key", "name", "city", "at"], "at"),
        ({"sequence_by": "AT"}, ["Key", "name", "city", "at"], "at"),
        ({"except_columns": ("at", "sets", *CONDITIONS)}, ["Key", "name", "city"], None),
        ({"except_columns": None, "columns": ("city", "key")}, ["city", "Key"], None),
        ({"sequence_by": "is gone"}, ["Key", "name", "city", "at"], None),  # an expression
    ],
)
def test_the_columns_of_the_target(arguments: dict[str, Any], names: list[str], sequence: str | None):
    """Those that the flow names, as the source spells them; the sequence is kept only where it is one of them."""
    made = columns(**arguments)
    assert (made.names, made.sequence_column, made.keys) == (names, sequence, ("Key",))


@pytest.mark.parametrize(
    ("arguments", "ignored"),
    [
        ({}, ()),
        ({"ignore_nulls": True}, ("name", "city", "at")),
        ({"ignore_nulls": True, "ignore_nulls_except": ("CITY",)}, ("name", "at")),
        ({"ignore_nulls_except": ("city",)}, ("name", "at")),
        ({"ignore_nulls_columns": ("city", "key")}, ("city",)),
    ],
)
def test_whose_null_leaves_a_value(arguments: dict[str, Any], ignored: tuple[str, ...]):
    """No key is among them."""
    made = columns(**arguments)
    assert made.ignored == ignored
    assert made.by_column is bool(ignored)


@pytest.mark.parametrize("given", [True, False, None])
def test_a_condition_that_is_not_known(given: bool | None):
    """An event of which it is NULL whether it deletes, or truncates, does neither."""
    made: Any = columns(apply_as_deletes="is gone", apply_as_truncates="is empty")
    row = dict.fromkeys(CONDITIONS, given)
    assert (made.delete.of(row), made.truncate.of(row)) == (given is True, given is True)
    plain: Any = columns()
    assert (plain.delete.of(row), plain.truncate) == (False, None)


@pytest.mark.parametrize(
    ("arguments", "tracked"),
    [
        ({}, ("name", "city", "at")), ({"tracked_columns": ("CITY", "key")}, ("city",)), ({"untracked_columns": ("city",)}, ("name", "at")),
    ],
)  # fmt: skip
def test_columns_that_make_a_history(arguments: dict[str, Any], tracked: tuple[str, ...]):
    """All but the keys, or those that are named."""
    assert columns(history=True, **arguments).tracked == tracked


def test_columns_that_an_event_names():
    """The column with their names describes the event, and is none of the target; a NULL list means all, and names have no case."""
    made: Any = columns(columns_to_update="sets", except_columns=CONDITIONS)
    assert made.names == ["Key", "name", "city", "at"]
    assert made.by_column
    assert made.selected.of({"sets": ["Name", None]}) == ["name"]
    assert made.selected.of({"sets": None}) is None


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"keys": ()}, "keys are needed"), ({"keys": ("missing",)}, "which the source does not have"),
        ({"keys": ("key", "KEY")}, "names 'Key' twice"), ({"except_columns": ("key",)}, "must keep its keys"),
        ({"columns": ("key",)}, "exclude each other"), ({"apply_as_deletes": "name"}, "is string, not a condition"),
        ({"tracked_columns": ("city",)}, "only type 2"), ({"untracked_columns": ("city",)}, "only type 2"),
        ({"ignore_nulls_columns": ("city",), "ignore_nulls_except": ("city",)}, "exclude each other"),
        ({"history": True, "tracked_columns": ("city",), "untracked_columns": ("name",)}, "exclude each other"),
        ({"history": True, "tracked_columns": ("sets",)}, "which the target does not have"),
        ({"columns_to_update": "name"}, "not an array of column names"),
        ({"columns_to_update": "sets", "ignore_nulls": True}, "exclude each other"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: dict[str, Any], what: str):
    """Unknown columns, conditions that are none, a key that is left out, and arguments that exclude each other: each says where, and what
    to do.
    """
    with pytest.raises(InvalidChangeFlow, match=what) as caught:
        columns(**arguments)
    assert caught.value.where == "main.py:1"
    assert caught.value.remedy
    assert "the call" not in caught.value.remedy


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        ("ignore_null_updates_column_list", "ignore_nulls_columns"),
        ("track_history_column_list", "tracked_columns"),
        ("track_history_except_column_list", "untracked_columns"),
    ],
)
def test_a_list_of_columns_that_the_target_leaves_out(argument: str, field: str):
    """Such a name would have no effect: refused with the column and the argument."""
    with pytest.raises(
        InvalidChangeFlow, match=f"{argument} names 'sets', which the target does not have"
    ) as caught:
        columns(history=True, **{field: ("city", "sets")})
    assert caught.value.remedy == f"Have the target keep 'sets', or take it off {argument}."


def test_the_remedy_names_the_column_that_was_meant():
    """The nearest column of the source, and all of them where none is near."""
    for key, remedy in (("Kez", "Did you mean 'Key'?"), ("missing", f"Its columns are: {', '.join(NAMES)}.")):
        with pytest.raises(
            InvalidChangeFlow, match=f"keys names '{key}', which the source does not have\\."
        ) as caught:
            columns(keys=(key,))
        assert caught.value.remedy == remedy


def test_keys_that_partitions_do_not_keep_whole():
    """Texts that the target is partitioned by, however they are spelled; no other key, and no other column."""
    frame: Any = Frame([], NAMES, types={**TYPES, "at": T.LongType()})
    made = ChangeFlow("s", **{"keys": ("KEY", "at"), "sequence_by": "at", **KEPT})
    assert change_columns(made, frame, None, ("kEy", "AT", "city")).partitions == ("Key",)
    assert change_columns(made, frame, None).partitions == ()
