"""Rules of all kinds, stacked, keep out, count and fail exactly what they say, in streams and in views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.in_step import Share, Steps, in_step

from headwater.errors import ExpectationViolated
from headwater_spark.testing.local_session import forget_tables

pytestmark = pytest.mark.usefixtures("adaptive")

SCHEMA = "id INT, amount INT, age INT"
RULES = """
@dp.expect("adult", "age >= 18")
@dp.expect_or_drop("valid_id", "id IS NOT NULL")
@dp.expect_all_or_drop({"pos": "amount > 0"})
"""
STREAM = f"""
@dp.table{RULES}def people():
    return spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(LANDING).where("true")
"""
VIEW = f"""
@dp.materialized_view{RULES}def people():
    return spark.read.schema("{SCHEMA}").json(LANDING)
"""
STRICT = f"""
@dp.table
@dp.expect("adult", "age >= 18")
@dp.expect_or_fail("whole", "id IS NOT NULL")
@dp.expect_or_drop("pos", "amount > 0")
def strict():
    return spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
def after():
    return dp.read_stream("strict").select("id")

@dp.table
def beside():
    return spark.readStream.schema("{SCHEMA}").json(LANDING).select("amount")
"""
STRICT_VIEW = f"""
@dp.materialized_view
@dp.expect_or_fail("whole", "id IS NOT NULL")
def view():
    return spark.read.schema("{SCHEMA}").json(LANDING).select("id")
"""


def person(id_: int | None, amount: int | None, age: int) -> dict[str, Any]:
    """A row of the source."""
    return {"id": id_, "amount": amount, "age": age}


SIX = [
    person(1, 10, 30),
    person(None, 10, 30),
    person(3, -1, 30),
    person(None, -1, 10),
    person(5, None, 10),
    person(6, 5, 17),
]


def quality(case: Any, flow: str) -> list[dict[str, Any]]:
    """What the event log has on a flow's batches."""
    bodies = [
        record["details"]["flow_progress"] for record in case.events(flow=flow, event_type="flow_progress")
    ]
    return [body["data_quality"] for body in bodies if "data_quality" in body]


def warn_and_drop_in_a_stream(case: Share) -> Steps:
    """In a stream: each rule is counted over all rows, NULL passes, a row that breaks two rules is dropped once."""
    yield from warn_and_drop(case, STREAM)


def warn_and_drop_in_a_view(case: Share) -> Steps:
    """In a view: each rule is counted over all rows, NULL passes, a row that breaks two rules is dropped once."""
    yield from warn_and_drop(case, VIEW)


def warn_and_drop(case: Share, source: str) -> Steps:
    """Each rule is counted over all rows, NULL passes, and a row that breaks two drop rules is dropped once."""
    case.rewrite(source)
    case.land(SIX)
    report = yield
    flow = report["people"]
    assert report.state == "COMPLETED"
    assert (flow.input_rows, flow.output_rows, flow.dropped_rows, flow.quarantined_rows) == (6, 3, 3, 0)
    assert case.rows("people") == [(1, 10, 30), (5, None, 10), (6, 5, 17)]
    (found,) = quality(case, "people")
    assert found["dropped_records"] == 3
    counts = {
        rule["name"]: (rule["passed_records"], rule["failed_records"]) for rule in found["expectations"]
    }
    assert counts == {"adult": (3, 3), "valid_id": (4, 2), "pos": (4, 2)}
    bodies = [r["details"]["flow_progress"] for r in case.events(flow="people", event_type="flow_progress")]
    statuses = [body["status"] for body in bodies if "data_quality" in body]
    assert statuses == ["RUNNING" if source is STREAM else "COMPLETED"]


def counts_are_of_each_batch(case: Share) -> Steps:
    """Two files in two batches, and a third in a later update: every batch has its own counts, none has another's."""
    case.rewrite(STREAM)
    case.land(SIX)
    case.land([person(7, 1, 40)])
    yield
    case.land([person(8, -1, 10), person(9, 1, 10)])
    report = yield
    assert (report["people"].input_rows, report["people"].dropped_rows) == (2, 1)
    adults = [counts["expectations"][0] for counts in quality(case, "people")]
    assert [rule["name"] for rule in adults] == ["adult"] * 3
    assert [(rule["passed_records"], rule["failed_records"]) for rule in adults] == [(3, 3), (1, 0), (0, 2)]
    assert [counts["dropped_records"] for counts in quality(case, "people")] == [3, 0, 1]


def rules_of_a_view_are_told_by_its_readers(case: Share) -> Steps:
    """Each stream that reads a view with rules tells what they saw, under the view's name; its own rule of the same name stays
    apart, whether the table's rows are judged or only counted.
    """
    case.rewrite(f"""
@dp.temporary_view
@dp.expect_or_drop("pos", "amount > 0")
@dp.expect("adult", "age >= 18")
def cleaned():
    return spark.readStream.schema("{SCHEMA}").json(LANDING)

@dp.table
@dp.expect_or_drop("pos", "amount > 5")
def counted():
    return dp.read_stream("cleaned")

@dp.table
@dp.expect_or_quarantine("pos", "amount > 5")
def judged():
    return dp.read_stream("cleaned")
""")
    case.land(SIX)
    assert (yield).state == "COMPLETED"
    for flow in ("counted", "judged"):
        (counts,) = quality(case, flow)
        seen = {
            (r["dataset"], r["name"]): (r["passed_records"], r["failed_records"])
            for r in counts["expectations"]
        }
        own, cleaned = case.own(flow), case.own("cleaned")
        assert seen == {(own, "pos"): (3, 1), (cleaned, "pos"): (4, 2), (cleaned, "adult"): (3, 3)}
        assert counts["dropped_records"] + counts["quarantined_records"] == 1


def test_fail_writes_nothing_of_its_batch(pipeline):
    """The batch before it stays, its own leaves no row and no record, readers wait, other branches go on."""
    case = pipeline(STRICT)
    case.land([person(1, 10, 30), person(2, -1, 30)])
    case.land([person(3, 10, 30), person(None, 10, 30), person(4, 10, 30)])
    for _ in range(2):
        code, answer = case.run()
        assert (code, answer["state"]) == (1, "FAILED")
        assert {flow["flow"]: flow["state"] for flow in answer["flows"]} == {
            "strict": "FAILED",
            "after": "SKIPPED",
            "beside": "COMPLETED",
        }
        assert case.rows("strict") == [(1, 10, 30)]
        assert not case.table("after").exists()
        assert len(case.rows("beside")) == 5
        assert [counts["dropped_records"] for counts in quality(case, "strict")] == [1]
    error = case.update().error
    assert isinstance(error, ExpectationViolated)
    assert not error.transient
    assert "'whole'" in error.what
    assert '"amount": 10, "age": 30' in error.what
    assert error.where == case.line_of("@dp.table")
    failed = [r for r in case.events(flow="strict", level="ERROR") if r["error"]]
    assert len(failed) == 3


def after_a_mended_rule_it_goes_on(case: Share) -> Steps:
    """With the rule softened, the same batch is read again and written, and the readers catch up."""
    case.rewrite(STRICT)
    case.land([person(1, 10, 30)])
    case.land([person(3, 10, 30), person(None, 10, 30)])
    assert (yield).state == "FAILED"
    case.rewrite(STRICT.replace("expect_or_fail", "expect_or_drop"))
    report = yield
    assert report.state == "COMPLETED"
    assert (report["strict"].input_rows, report["strict"].dropped_rows) == (2, 1)
    assert case.rows("strict") == [(1, 10, 30), (3, 10, 30)]
    assert case.rows("after") == [(1,), (3,)]


def fail_leaves_a_view_as_it_was(case: Share) -> Steps:
    """A refresh that meets a broken row writes nothing: readers keep the rows of the last good one."""
    case.rewrite(STRICT_VIEW)
    case.land([person(1, 1, 1)])
    assert (yield).state == "COMPLETED"
    before = case.version("view")
    case.land([person(2, 1, 1), person(None, 1, 1)])
    report = yield
    assert isinstance(report["view"].error, ExpectationViolated)
    assert (case.version("view"), case.rows("view")) == (before, [(1,)])


SCENARIOS = (
    warn_and_drop_in_a_stream,
    warn_and_drop_in_a_view,
    counts_are_of_each_batch,
    rules_of_a_view_are_told_by_its_readers,
    after_a_mended_rule_it_goes_on,
    fail_leaves_a_view_as_it_was,
)


def test_rules_hold(tmp_path: Path, spark: SparkSession):
    """Each scenario holds what its docstring says."""
    in_step(
        tmp_path, ("people", "cleaned", "counted", "judged", "strict", "after", "beside", "view"), SCENARIOS
    )
    forget_tables(spark)
