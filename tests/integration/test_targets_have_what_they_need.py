"""AUTO CDC around its merge: hydration by the target's own query, several flows, views of a history, counts."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.in_step import Share, Steps, in_step

from headwater import errors
from headwater.commands.status import show_status
from headwater.event_log.reader import flow_results
from headwater.testing.auto_cdc import expected_scd1, expected_scd2

CHANGES = """
@dp.temporary_view
def cdc():
    return spark.readStream.schema("id INT, name STRING, city STRING, version INT, op STRING").json(LANDING)

ARGUMENTS = dict(source="cdc", keys=["id"], sequence_by="version", apply_as_deletes="op = 'D'")
"""
OWN_QUERY = (
    CHANGES
    + """
@dp.table(name="users")
def first_users():
    return spark.sql("select * from values (1, 'Ann', 'x', 0), (2, 'Bob', 'y', 0), (4, 'Dan', 'z', 9) as t(id, name, city, version)")

dp.apply_changes(target="users", **ARGUMENTS, except_column_list=["op"])
# As guides write it: nothing declares this target.
HISTORY = "users_history"
dp.apply_changes(target=HISTORY, **ARGUMENTS, except_column_list=["op", "version"], stored_as_scd_type=2)

@dp.materialized_view
def now():
    return dp.read(HISTORY + "_current")

@dp.materialized_view
def versions():
    return spark.sql(f"select id, name, valid_from, valid_to from {HISTORY}_versions where id = 1")
"""
)
FIRST = [(1, "Anna", "x", 5, "U"), (2, None, None, 3, "D"), (3, "Cy", "z", 1, "U"), (3, "Cy", "z", 2, "U"), (4, "Dana", "w", 8, "U")]  # fmt: skip
LATE = [(1, "Old", "w", 2, "U"), (2, "Bobby", "y", 2, "U"), (5, None, None, 1, "D")]
HYDRATION = [(1, "Ann", "x", 0, "U"), (2, "Bob", "y", 0, "U"), (4, "Dan", "z", 9, "U")]
NAMES = ("id", "name", "city", "version", "op")


def land(case, events):
    case.land([dict(zip(NAMES, event, strict=True)) for event in events])


def oracle(function, *events, **options):
    rows = [dict(zip(NAMES, event, strict=True)) for event in events]
    return [
        tuple(row.values())
        for row in function(
            rows,
            keys=["id"],
            sequence_by="version",
            apply_as_deletes=lambda row: row["op"] == "D",
            **options,
        )
    ]


def a_target_with_a_query_of_its_own(case: Share) -> Steps:
    """The query fills the table once, under its rows' sequences; histories have views; late and forgotten events are counted."""
    case.rewrite(OWN_QUERY)
    land(case, FIRST)
    report = yield
    assert report.state == "COMPLETED", report.error
    land(case, LATE)
    assert (yield).state == "COMPLETED"
    assert case.rows("users", order="id") == oracle(
        expected_scd1, *HYDRATION, *FIRST, *LATE, except_column_list=("op",)
    )
    history = oracle(expected_scd2, *FIRST, *LATE, except_column_list=("op", "version"))
    assert case.rows("users_history", order='id, "__START_AT"') == history
    assert case.columns("now") == ["id", "name", "city", "valid_from", "valid_to"]
    assert case.rows("now", order="id") == [row for row in history if row[-1] is None]
    assert case.rows("versions", order="valid_from") == [(1, "Old", 2, 5), (1, "Anna", 5, None)]
    # A reader without the pipeline asks for the same of the table itself.
    query = 'select id from t where "__END_AT" is null order by id'
    table = DeltaTable(str(case.table("users_history")))
    found = QueryBuilder().register("t", table).execute(query).read_all()
    assert [row["id"] for row in pa.table(found).to_pylist()] == [1, 3, 4]
    results = {result.flow: result.changes for result in flow_results(case.project().state_folder)}
    assert results[case.own("users")] == {
        "upserted": 0,
        "deleted": 0,
        "late": 2,
        "superseded": 0,
        "tombstones": 1,
    }
    assert results[case.own("users_history")]["late"] == 0
    assert results[case.own("users_history")]["tombstones"] == 1
    with redirect_stdout(io.StringIO()) as shown:
        show_status(case.project(), as_json=False)
    assert "Changes merged" in shown.getvalue()


SEVERAL = (
    CHANGES
    + """
@dp.temporary_view
def archive():
    return spark.sql("select 1 id, 'Ann' name, 'x' city, 0 version, 'U' op union all select 6, 'Eve', 'x', 7, 'U'")

dp.create_streaming_table("both")
for half, condition in (("odd", "id % 2 = 1"), ("even", "id % 2 = 0")):
    def events(condition=condition):
        return dp.read_stream("cdc").where(condition)
    dp.temporary_view(events, name=half)
    dp.create_auto_cdc_flow(target="both", name=f"both_{half}", **{**ARGUMENTS, "source": half})
dp.create_auto_cdc_flow(target="both", name="backfill", once=True, **{**ARGUMENTS, "source": "archive"})

@dp.table
def both_current():
    return spark.readStream.option("readChangeFeed", "true").table("both").select("id")
"""
)


def several_flows_fill_one_target(case: Share) -> Steps:
    """Two streams and a batch that is read once come together as one set of events; a column that they gain later is added."""
    case.rewrite(SEVERAL)
    land(case, FIRST)
    report = yield
    assert report.state == "COMPLETED", report.error
    case.rewrite(
        SEVERAL.replace("op STRING", "op STRING, age INT")
        .replace("'U' op union", "'U' op, cast(null as int) age union")
        .replace("7, 'U'", "7, 'U', null")
    )
    land(case, LATE)
    case.land([dict(zip((*NAMES, "age"), (7, "Gil", "z", 1, "U", 40), strict=True))])
    report = yield
    assert report.state == "COMPLETED", report.error
    archive = [(1, "Ann", "x", 0, "U"), (6, "Eve", "x", 7, "U")]
    before = [(*row, None) for row in oracle(expected_scd1, *archive, *FIRST, *LATE)]
    assert case.rows("both", order="id") == [*before, (7, "Gil", "z", 1, "U", 40)]
    assert case.own("both_current") in case.project().state_folder.joinpath("manifest.json").read_text()


NAMES_OF_ALL = (
    "cdc", "users", "users_history", "now", "versions", "archive", "both", "odd", "even", "both_current",
)  # fmt: skip


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("pipeline")
def test_queries_flows_and_views(tmp_path: Path):
    """A target with a query of its own, and one of several flows: what the docstrings say."""
    scenarios = [a_target_with_a_query_of_its_own, several_flows_fill_one_target]
    in_step(tmp_path, NAMES_OF_ALL, scenarios)


def test_a_query_that_does_not_go_with_the_changes(pipeline):
    """Refused before anything is written: it has no column to order its rows by."""
    case = pipeline(
        f'{CHANGES}\n@dp.table\ndef t():\n    return spark.range(3)\ndp.apply_changes(target="t", **ARGUMENTS)\n'
    )
    with pytest.raises(errors.InvalidPipeline) as caught:
        case.update()
    message = f"{caught.value.what} {caught.value.remedy}"
    assert re.search("sequence_by does not fit.*own query", message, re.DOTALL), caught.value
    assert case.nothing_written()
