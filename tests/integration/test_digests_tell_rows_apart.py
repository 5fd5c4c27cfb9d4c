"""By sums of hashes, groups whose rows differ are told from those that have the same: in values of every plain type."""

from __future__ import annotations

import random
from collections import Counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater_spark.views.digests import can_digest, with_differences
from headwater_spark.views.known_rows import SIGN

# Of each type some values that are equal to the eye of a hash, or next to each other.
VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "tiny": ("cast(0 as tinyint)", "cast(-1 as tinyint)"),
    "small": ("cast(0 as smallint)", "cast(1 as smallint)"),
    "number": ("0", "1", "-1"),
    "long": ("0L", "4294967296L", "-9223372036854775808L"),
    "single": ("float('0')", "float('-0.0')", "float('NaN')"),
    "double": ("double('0')", "double('-0.0')", "double('NaN')", "1.5D"),
    "exact": ("cast(0 as decimal(12,2))", "cast(0.01 as decimal(12,2))"),
    "wide": ("cast(1 as decimal(38,10))", "cast(-1e20 as decimal(38,10))"),
    "text": ("''", "'a'", "'A'", "'ä'"),
    "bytes": ("X''", "X'00'", "X'0000'"),
    "day": ("date'1970-01-01'", "date'1582-10-14'"),
    "moment": ("timestamp'1970-01-01 00:00:00'", "timestamp'1969-12-31 23:59:59.999999'"),
}
GROUPS, ROWS = 300, 1500


def made(spark: SparkSession, rows: list[tuple[int, ...]]) -> DataFrame:
    """Rows of a group, of the places of their values (the last is NULL), and of a sign."""
    places = spark.createDataFrame(rows, ", ".join(f"`{name}` int" for name in ("g", *VALUES, SIGN)))
    values = [
        f"element_at(array({', '.join(texts)}, null), {name} + 1) {name}" for name, texts in VALUES.items()
    ]
    return places.selectExpr("g", *values, SIGN)


def differing(rows: DataFrame) -> set[int]:
    """The groups in which other rows came than went."""
    fields = [field for field in rows.schema.fields if field.name in VALUES]
    assert can_digest(fields)
    return {row.g for row in with_differences(rows, [F.col("g")], fields).collect()}


def test_groups_that_differ(spark: SparkSession) -> None:
    """Of 300 groups of few rows, those in which other rows came than went, and of pairs of rows those that differ in one value."""
    pick = random.Random(7)
    wanted: dict[int, Counter[tuple[int, ...]]] = {}
    rows = []
    for _ in range(ROWS):
        group = pick.randrange(GROUPS)
        # Most rows differ in few columns from each other: their groups are the hard ones.
        chosen = pick.sample(list(VALUES), 2)
        places = tuple(pick.randint(0, len(VALUES[name])) if name in chosen else 0 for name in VALUES)
        # What comes mostly goes as well.
        for sign in (1, -1) if pick.randrange(12) else (pick.choice((1, -1)),):
            rows.append((group, *places, sign))
            wanted.setdefault(group, Counter())[places] += sign
    differ = {group for group, counts in wanted.items() if any(counts.values())}
    assert 50 < len(differ) < len(wanted) - 50
    assert differing(made(spark, rows)) == differ
    pairs = [
        (name, one, other)
        for name, texts in VALUES.items()
        for one in range(len(texts) + 1)
        for other in range(len(texts) + 1)
    ]
    single = [
        (number, *(place if own == name else 0 for own in VALUES), sign)
        for number, (name, one, other) in enumerate(pairs)
        for place, sign in ((one, 1), (other, -1))
    ]
    assert differing(made(spark, single)) == {n for n, (_, one, other) in enumerate(pairs) if one != other}
