"""A table whose name is that of another's quarantine is its owner's, until a rule quarantines: then it is told, not touched."""

from __future__ import annotations

from headwater.checkpoints.conditions import NameTaken

OWN = """
@dp.table
def orders():
    return spark.readStream.schema("id INT").json(LANDING).where("id > 0")

@dp.table
def orders_quarantine():
    return spark.readStream.schema("id INT").json(LANDING).where("id <= 0")
"""
RULE = """
@dp.table
@dp.expect_or_quarantine("positive", "id > 0")
def orders():
    return spark.readStream.schema("id INT").json(LANDING)
"""


def test_neither_emptied_nor_written_to(pipeline):
    """A full refresh of the one table leaves the other's rows; a rule that would write into it fails the flow."""
    case = pipeline(OWN)
    case.land([{"id": 1}, {"id": -1}])
    case.update()
    assert case.update(full_refresh=("orders",)).state == "COMPLETED"
    assert (case.rows("orders"), case.rows("orders_quarantine")) == ([(1,)], [(-1,)])
    case.rewrite(RULE)
    case.land([{"id": -2}])
    report = case.update()
    assert isinstance(report.error, NameTaken), report.error
    assert report.error.where == case.line_of("@dp.table")
    assert (case.rows("orders"), case.rows("orders_quarantine")) == ([(1,)], [(-1,)])
