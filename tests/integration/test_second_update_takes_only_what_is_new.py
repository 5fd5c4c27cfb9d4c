"""An update reads exactly what has come since the one before, and writes nothing where nothing has."""

from __future__ import annotations

SOURCE = """
@dp.table(table_properties={"delta.enableChangeDataFeed": "true"}, comment="c")
def bronze():
    return spark.readStream.schema("id INT, team STRING").json(LANDING)

@dp.table
def silver():
    return dp.read_stream("bronze").where("id % 2 = 0")

@dp.materialized_view
def gold():
    return dp.read("silver").groupBy("team").count()

@dp.materialized_view
def today():
    return dp.read("silver").select(F.count("*").alias("rows"), F.current_timestamp().alias("at"))
"""

# Raw in the statistics of each commit that has it, where JSON needs no escape, and the end of a line to careless readers.
B = "\u2028 b\u0085"


def test_rows_in_are_what_is_new(pipeline):
    """Four updates: with data, with more of it, with none, with a changed view; rows in and out, batches and versions are exact."""
    case = pipeline(SOURCE)
    case.land([{"id": n, "team": ("a", B)[n % 4 // 2]} for n in range(10)])
    first = case.update()
    assert first.state == "COMPLETED"
    assert (first["bronze"].input_rows, first["bronze"].output_rows) == (10, 10)
    assert (first["silver"].input_rows, first["silver"].output_rows) == (10, 5)
    assert case.rows("gold") == [("a", 3), (B, 2)]

    case.land([{"id": 10, "team": B}, {"id": 11, "team": B}])
    second = case.update()
    assert (second["bronze"].input_rows, second["silver"].input_rows) == (2, 2)
    assert (second["silver"].output_rows, second["gold"].output_rows) == (1, 2)
    assert [row[0] for row in case.rows("bronze")] == list(range(12))
    assert case.rows("gold") == [("a", 3), (B, 3)]

    before = {name: case.version(name) for name in ("bronze", "silver", "gold", "today")}
    third = case.update()
    assert third.state == "COMPLETED"
    assert [third[name].batches for name in ("bronze", "silver", "gold")] == [0, 0, 0]
    assert third["bronze"].input_rows == 0
    after = {name: case.version(name) for name in before}
    assert after.pop("today") == before.pop("today") + 1, (
        "a view that depends on the clock is always recomputed"
    )
    assert after == before
    recorded = [record["details"]["flow_progress"] for record in case.events(flow="bronze", level="METRICS")]
    assert [body["metrics"]["num_input_rows"] for body in recorded] == [10, 2]
    check_changed_view(case)


def check_changed_view(case):
    """A materialized view is recomputed when its code changes, though no source has moved."""
    case.rewrite(
        SOURCE.replace('.groupBy("team").count()', '.groupBy("team").agg(F.sum("id").alias("total"))')
    )
    report = case.update(tables=("gold",))
    assert report["gold"].batches == 1
    assert case.columns("gold") == ["team", "total"]
    progress = case.events(update_id=report.result.update_id, event_type="flow_progress")
    left_out = [r for r in progress if r["details"]["flow_progress"]["status"] == "EXCLUDED"]
    assert sorted(r["origin"]["flow_name"] for r in left_out) == ["bronze", "silver", "today"]
    assert {r["origin"]["flow_name"] for r in progress if r not in left_out} == {"gold"}
    assert case.rows("gold") == [("a", 12), (B, 18)]
