"""A source without any data gives a table without any rows, not an error, and rows that come later are taken in."""

from __future__ import annotations

SOURCE = """
NAMES = ["a", "b", "c", "d", "e", "f"]

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
    """Six streams, two with data, their followers and views over all; then data for one that had none."""
    case = pipeline(SOURCE)
    for name in "abcdef":
        (case.landing / name).mkdir()
    case.land([{"id": 1}], "b")
    case.land([{"id": None}], "c")
    assert case.update().state == "COMPLETED"
    assert {name: case.rows(name) for name in "abcdef"} == {
        name: [(1,)] if name == "b" else [] for name in "abcdef"
    }
    assert [case.columns(f"{name}_next") for name in "abcdef"] == [["id"]] * 6
    assert (case.rows("all_of_them"), case.rows("of_no_files")) == ([(1,)], [])
    case.land([{"id": 2}], "a")
    assert case.update().state == "COMPLETED"
    assert (case.rows("a"), case.rows("a_next")) == ([(2,)], [(2,)])
    assert (case.rows("all_of_them"), case.rows("of_no_files")) == ([(1,), (2,)], [(2,)])
