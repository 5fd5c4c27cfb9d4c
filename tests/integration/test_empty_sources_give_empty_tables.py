"""A source without any data gives a table without any rows, not an error, and rows that come later are taken in."""

from __future__ import annotations

SOURCE = """
NAMES = ["a", "b", "c"]

def declare(name):
    @dp.table(name=name)
    @dp.expect_or_drop("known", "id IS NOT NULL")
    def table():
        return spark.readStream.schema("id INT").json(f"{LANDING}/{name}")

    @dp.table(name=f"{name}_next", comment="follows")
    def following():
        return dp.read_stream(name)

for name in NAMES:
    declare(name)

@dp.materialized_view
def all_of_them():
    rows = dp.read(NAMES[0]).select("id")
    for name in NAMES[1:]:
        rows = rows.union(dp.read(f"{name}_next"))
    return rows

@dp.materialized_view
def of_no_files():
    return spark.read.schema("id INT").json(f"{LANDING}/a")
"""


def test_some_are_empty(pipeline):
    """Three streams, two with data, of which a rule keeps one out, their followers and views over all; then data for the third."""
    case = pipeline(SOURCE)
    for name in "abc":
        (case.landing / name).mkdir()
    case.land([{"id": 1}], "b")
    case.land([{"id": None}], "c")
    assert case.update().state == "COMPLETED"
    assert {name: case.rows(name) for name in "abc"} == {"a": [], "b": [(1,)], "c": []}
    assert [case.columns(f"{name}_next") for name in "abc"] == [["id"]] * 3
    assert (case.rows("all_of_them"), case.rows("of_no_files")) == ([(1,)], [])
    case.land([{"id": 2}], "a")
    assert case.update().state == "COMPLETED"
    assert (case.rows("a"), case.rows("a_next")) == ([(2,)], [(2,)])
    assert (case.rows("all_of_them"), case.rows("of_no_files")) == ([(1,), (2,)], [(2,)])
