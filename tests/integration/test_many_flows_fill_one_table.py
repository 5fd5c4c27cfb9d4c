"""Several flows append to one table, each with its own position; one that runs once does so, and no more."""

from __future__ import annotations

import shutil

import pytest

SOURCE = """
dp.create_streaming_table("orders", comment="of all shops")

def landed(folder, columns="id INT, shop STRING"):
    return spark.readStream.schema(columns).json(LANDING + "/" + folder)

@dp.append_flow(target="orders")
def web():
    return landed("web")

@dp.append_flow(target="orders", once=True)
def archive():
    return spark.read.schema("id INT, shop STRING").json(LANDING + "/archive")
"""
LATER = """
@dp.append_flow(target="orders", name="from_app")
def app():
    return landed("app", "id INT, shop STRING, device STRING")

@dp.materialized_view
def sizes():
    return dp.read("orders").groupBy("shop").count()
"""


def first_update(case):
    """Each folder has a row; the flow of one of them comes later."""
    for folder in ("web", "archive", "app"):
        case.land([{"id": 1, "shop": folder}], folder)
    assert case.update().statuses == {"web": "COMPLETED", "archive": "COMPLETED"}


@pytest.fixture
def case(kept):
    """The pipeline after its first update."""
    with kept(SOURCE, first_update) as prepared:
        yield prepared


def test_a_flow_is_added_later(case):
    """The new flow begins at its source's start, with a column of its own; the others do not begin again, nor does one that runs
    once read what comes to its source later.
    """
    case.rewrite(SOURCE + LATER)
    case.land([{"id": 2, "shop": "web"}], "web")
    case.land([{"id": 2, "shop": "archive"}], "archive")
    report = case.update()
    assert report.state == "COMPLETED"
    assert {name: report[name].output_rows for name in ("web", "archive", "from_app")} == {
        "web": 1,
        "archive": 0,
        "from_app": 1,
    }
    assert report["archive"].batches == 0
    assert case.rows("orders") == [(1, "app", None), (1, "archive", None), (1, "web", None), (2, "web", None)]
    assert case.columns("orders") == ["id", "shop", "device"]
    assert case.rows("sizes") == [("app", 1), ("archive", 1), ("web", 2)]
    case.rewrite(SOURCE)
    case.land([{"id": 3, "shop": "web"}], "web")
    assert case.update().state == "COMPLETED"
    assert len(case.rows("orders")) == 5


def test_once_though_its_driver_died_at_the_end(case):
    """Committed and not noted, or noted and forgotten: the table's log knows that the rows are there, and what has come since is not
    read until a full refresh, which reads all of it; and once more it is done. When its rows are gone, a flow that has run does
    not say that all is well.
    """
    case.land([{"id": 2, "shop": "archive"}], "archive")
    case.checkpoint("orders", "archive").update_state(completed=False, sink_id=None)
    assert case.update(flows=("archive",)).state == "COMPLETED"
    shutil.rmtree(case.checkpoint("orders", "archive").folder)
    assert case.update().state == "COMPLETED"
    assert case.rows("orders") == [(1, "archive"), (1, "web")]
    shutil.rmtree(case.checkpoint("orders", "archive").folder)
    report = case.update(full_refresh=("orders",))
    assert (report["archive"].output_rows, report["web"].output_rows) == (2, 1)
    assert case.rows("orders") == [(1, "archive"), (1, "web"), (2, "archive")]
    assert case.update(flows=("archive",))["archive"].batches == 0
    check_that_rows_are_missed(case)


def check_that_rows_are_missed(case):
    """The table is gone: both flows are refused, and a full refresh brings its rows back."""
    shutil.rmtree(case.table("orders"))
    code, answer = case.run()
    assert code == 3
    assert [flow["state"] for flow in answer["flows"]] == ["FAILED", "FAILED"]
    assert not case.table("orders").exists()
    assert case.update(full_refresh=("orders",)).state == "COMPLETED"
    assert case.rows("orders") == [(1, "archive"), (1, "web"), (2, "archive")]


ORDERED = """
dp.create_table("orders", comment="history first")

def landed(folder):
    return spark.readStream.schema("id INT, shop STRING").json(LANDING + "/" + folder)

@dp.append_flow(target="orders", depends_on="archive")
def web():
    return landed("web")

@dp.append_flow(target="orders", once=True)
def archive():
    rows = spark.read.schema("id INT, shop STRING").json(LANDING + "/archive")
    return rows.where(F.expr("if(shop = 'broken', raise_error('no such shop'), true)"))

@dp.append_flow(target="orders")
def app():
    return landed("app")
"""
# A table with a query of its own, and flows beside it.
OWN_QUERY = """
@dp.table
def own():
    return landed("web")

@dp.append_flow(target="own", once=True)
def own_archive():
    return spark.read.schema("id INT, shop STRING").json(LANDING + "/app")

@dp.append_flow(target="own")
def own_app():
    return landed("app")
"""
IN_SQL = """
CREATE TABLE totals FLOW INSERT BY NAME SELECT id FROM STREAM orders;
CREATE STREAMING TABLE newest;
CREATE FLOW by_id AS INSERT INTO newest BY NAME REPLACE USING (shop) SEQUENCE BY id SELECT id, shop FROM STREAM orders;
CREATE STREAMING TABLE large;
CREATE FLOW over_one AS INSERT INTO large BY NAME REPLACE WHERE id > 1 SELECT id, shop FROM orders;
"""


def test_a_flow_waits_for_another_of_its_table(pipeline):
    """History comes before what is new: while it fails, the flow that waits is skipped and a third one runs; tables that flows
    alone fill, and flows in SQL that replace rows, come of it. Flows, one of them once, append beside a table's own query; each
    keeps its own position.
    """
    case = pipeline(ORDERED + OWN_QUERY, files={"transformations/more.sql": IN_SQL})
    for folder in ("web", "app"):
        case.land([{"id": 1, "shop": folder}, {"id": 2, "shop": folder}], folder)
    case.land([{"id": 0, "shop": "broken"}], "archive")
    failed = case.update()
    own = ("archive", "web", "app")
    assert {name: failed.statuses[name] for name in own} == {
        "archive": "FAILED", "web": "SKIPPED", "app": "COMPLETED"
    }  # fmt: skip
    shutil.rmtree(case.landing / "archive")
    case.land([{"id": 0, "shop": "old"}], "archive")
    case.land([{"id": 3, "shop": "app"}], "app")
    report = case.update()
    assert report.state == "COMPLETED"
    written = {name: report[name].output_rows for name in ("own", "own_archive", "own_app")}
    assert written == {"own": 0, "own_archive": 0, "own_app": 1}
    assert case.rows("own") == sorted([(1, "web"), (2, "web"), *2 * [(1, "app"), (2, "app")], (3, "app")])
    ends = [event for event in case.events(event_type="flow_progress") if event["origin"]["flow_name"] in own]
    states = [(e["origin"]["flow_name"], e["details"]["flow_progress"]["status"]) for e in ends]
    assert states.index(("archive", "COMPLETED")) < states.index(("web", "STARTING"))
    assert case.rows("orders") == [(0, "old"), (1, "app"), (1, "web"), (2, "app"), (2, "web"), (3, "app")]
    assert case.rows("totals") == [(0,), (1,), (1,), (2,), (2,), (3,)]
    assert case.rows("newest") == [(0, "old"), (2, "web"), (3, "app")]
    assert case.rows("large") == [(2, "app"), (2, "web"), (3, "app")]
