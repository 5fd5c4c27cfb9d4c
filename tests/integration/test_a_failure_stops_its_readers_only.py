"""A failed flow fails alone: its readers are skipped, all other branches are done, and the next update catches up."""

from __future__ import annotations

from headwater.errors import FlowFailed

SOURCE = """
def landed():
    return spark.readStream.schema("id INT").option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
def shares():
    return landed().select("id", F.expr("12 div (id - 3)").alias("share"))

@dp.temporary_view
def big_shares():
    return dp.read_stream("shares").where("share > 3")

@dp.table
def big():
    return dp.read_stream("big_shares")

@dp.materialized_view
def summary():
    return dp.read("big").select(F.count("*").alias("n"))

@dp.table
def good():
    return landed()

@dp.materialized_view
def total():
    return dp.read("good").select(F.sum("id").alias("ids"))
"""


def test_failed_skipped_and_done(pipeline):
    """A division by zero in one of three batches, then a mended query."""
    case = pipeline(SOURCE)
    for number in (1, 3, 5):
        case.land([{"id": number}])
    report = case.update()
    assert report.state == "FAILED"
    assert report.statuses == {
        "shares": "FAILED",
        "big": "SKIPPED",
        "summary": "SKIPPED",
        "good": "COMPLETED",
        "total": "COMPLETED",
    }
    error = report["shares"].error
    assert isinstance(error, FlowFailed)
    assert "DIVIDE_BY_ZERO" in error.what
    assert "try_divide" in error.remedy
    assert "shares" in str(report["big"].error)
    assert case.rows("shares") == [(1, -6)]
    assert case.rows("total") == [(9,)]
    states = {r["origin"]["flow_name"]: r["details"]["flow_progress"]["status"] for r in case.events() if r["event_type"] == "flow_progress"}  # fmt: skip
    assert states == report.statuses

    case.rewrite(SOURCE.replace("12 div (id - 3)", "12 div nullif(id - 3, 0)"))
    report = case.update()
    assert set(report.statuses.values()) == {"COMPLETED"}
    assert case.rows("shares") == [(1, -6), (3, None), (5, 6)]
    assert (case.rows("big"), case.rows("summary")) == ([(5, 6)], [(1,)])
    assert report["good"].batches == 0
