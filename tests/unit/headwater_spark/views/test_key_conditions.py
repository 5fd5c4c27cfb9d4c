"""The part of a view that is replaced: its condition holds for each touched key, whatever is in the values."""

from __future__ import annotations

import pytest

from headwater.delta_log.file_bounds import Sought
from headwater_spark.views.key_conditions import KeyColumn, key_condition, sought_values, usable


@pytest.mark.parametrize(
    ("kind", "value", "literal"),
    [
        ("int", "-5", "-5"),
        ("bigint", "-9223372036854775808", "-9223372036854775808L"),
        ("smallint", "5", "5S"),
        ("tinyint", "5", "5Y"),
        ("decimal(12,2)", "-1.50", "-1.50BD"),
        ("boolean", "true", "true"),
        ("date", "2026-01-02", "DATE'2026-01-02'"),
        ("timestamp", 1_500_000, "TIMESTAMP'1970-01-01 00:00:01.500000+00:00'"),
        ("timestamp_ntz", "2026-01-02 03:04:05.1", "TIMESTAMP_NTZ'2026-01-02 03:04:05.1'"),
        ("string", "plain 1", "'plain 1'"),
        ("string", "it's ${x}\\", "'it\\u0027s \\u0024\\u007bx\\u007d\\u005c'"),
        ("string", "\U0001f600é\n", "'\\U0001f600\\u00e9\\u000a'"),
        ("string", "", "''"),
    ],
)
def test_values_of_each_type(kind: str, value: object, literal: str):
    """A literal of the column's own type; nothing in a text is read as anything else."""
    assert key_condition([KeyColumn("a`b", kind)], [(value,)], 10) == (f"(`a``b` IN ({literal}))", ("a`b",))


def test_null_is_a_key():
    """Rows without a key are a part of their own."""
    column = KeyColumn("k", "int")
    assert key_condition([column], [("1",), (None,)], 10) == ("(`k` IN (1) OR `k` IS NULL)", ("k",))
    assert key_condition([column], [(None,)], 10) == ("(`k` IS NULL)", ("k",))


def test_several_columns():
    """Each is narrowed to its own values, those with few of them first; one with too many is left out."""
    columns = [KeyColumn("id", "bigint"), KeyColumn("day", "date")]
    keys = [(str(number), "2026-01-01") for number in range(5)]
    condition = key_condition(columns, keys, 4)
    assert condition == ("(`day` IN (DATE'2026-01-01'))", ("day",))
    both = key_condition(columns, keys, 5)
    assert both is not None
    assert both[1] == ("day", "id")


def test_too_many_values_make_a_range():
    """Numbers and times are narrowed to a range; texts can't be, and then no condition is found."""
    keys = [(str(number),) for number in range(-2, 4)]
    assert key_condition([KeyColumn("id", "int")], keys, 3) == ("(`id` >= -2 AND `id` <= 3)", ("id",))
    some = [*keys, (None,)]
    assert key_condition([KeyColumn("id", "int")], some, 3) == (
        "(`id` >= -2 AND `id` <= 3) OR `id` IS NULL",
        ("id",),
    )
    assert key_condition([KeyColumn("id", "string")], keys, 3) is None


@pytest.mark.parametrize(
    "kind",
    [
        "double",
        "float",
        "binary",
        "map<int,int>",
        "array<int>",
        "struct<a:int>",
        "string collate UTF8_LCASE",
        "char(3)",
        "varchar(3)",
        "variant",
        "interval day",
    ],
)
def test_types_that_are_no_keys(kind: str):
    """Where equal values are not recognised by their text, or by Spark's own comparison, nothing is replaced by them."""
    assert not usable(kind)


def test_a_time_that_no_literal_says():
    """Years before 1000 are written in ways that parsers read differently: such a column narrows nothing."""
    assert key_condition([KeyColumn("t", "timestamp")], [(-62_135_596_800_000_000,)], 10) is None


def test_files_are_sought_by_what_the_condition_has():
    """Lists are lists, ranges ranges, as numbers and texts that bounds compare with; a type without bounds is left out."""
    columns = [
        KeyColumn("id", "bigint"),
        KeyColumn("day", "date"),
        KeyColumn("m", "decimal(9,2)"),
        KeyColumn("s", "string"),
    ]
    keys = [("7", "2026-01-02", "1.50", "b"), ("-3", "2026-01-01", "2.00", None)]
    assert sought_values(columns, keys, ("id", "day", "m", "s"), 2) == [
        Sought("id", (-3, 7)), Sought("day", (20454, 20455)), Sought("s", ("b",), null=True),
    ]  # fmt: skip
    assert sought_values(columns, keys, ("day",), 2) == [Sought("day", (20454, 20455))]
    assert sought_values(columns[:1], keys, ("id",), 1) == [Sought("id", (-3, 7), between=True)]


def test_a_date_that_is_no_plain_one_leaves_no_file_out():
    """Years of five digits are known to Spark and not here."""
    assert sought_values([KeyColumn("day", "date")], [("+10000-01-01",)], ("day",), 9) == []


def test_times_of_years_that_have_fewer_digits():
    """Their text is not of one form on all machines: such a key is not named, and the column does not narrow the part."""
    first_of_1000 = -30_610_224_000_000_000
    column = KeyColumn("at", "timestamp")
    assert key_condition([column], [(first_of_1000,)], 10) is not None
    assert key_condition([column], [(first_of_1000 - 1,)], 10) is None
