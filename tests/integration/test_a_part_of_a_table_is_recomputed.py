"""``replace_where``: an update recomputes the rows that meet a condition and leaves the others alone (features B82)."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from tests.pipeline_case import PipelineCase

from headwater.errors import NotADataFrame, QueryFailed, UnsupportedArgument

DAYS = """
@dp.table(replace_where={condition}, partition_cols=["day"])
def days():
    rows = spark.read.schema("day INT, shop STRING, n INT").json(LANDING)
    return rows.groupBy("day", "shop").agg(F.sum("n").cast("int").alias("n"))
"""


def row(day: int, shop: str, n: int) -> dict[str, object]:
    """A row of the source."""
    return {"day": day, "shop": shop, "n": n}


@pytest.mark.parametrize("condition", ["'day >= 3'", "F.col('day') >= F.lit(3)"])
def test_only_the_part_changes(pipeline, condition: str):
    """The first and each later update owns the rows that meet the condition; the others stay, whatever the source says."""
    case: PipelineCase = pipeline(DAYS.format(condition=condition))
    case.land([row(2, "a", 1), row(3, "a", 1), row(4, "it's", 5)])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("days") == [(3, "a", 1), (4, "it's", 5)]
    # Older rows came before the condition moved on.
    case.rewrite(DAYS.format(condition="'day >= 2'"))
    assert case.update().state == "COMPLETED"
    case.rewrite(DAYS.format(condition=condition))
    case.land([row(2, "a", 100), row(3, "a", 10), row(5, "b", 7)])
    before = case.version("days")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("days") == [(2, "a", 1), (3, "a", 11), (4, "it's", 5), (5, "b", 7)]
    assert case.version("days") == before + 1
    assert report["days"].output_rows == 3
    assert case.update()["days"].batches == 0


def test_a_full_refresh_takes_all(pipeline):
    """A full refresh computes the whole query, with no row of before left."""
    case: PipelineCase = pipeline(DAYS.format(condition="'day >= 3'"))
    case.land([row(1, "a", 1), row(3, "a", 2)])
    case.update()
    assert case.rows("days") == [(3, "a", 2)]
    report = case.update(full_refresh=("days",))
    assert report.state == "COMPLETED", report.error
    assert case.rows("days") == [(1, "a", 1), (3, "a", 2)]


def test_new_columns_of_the_part(pipeline):
    """A column that the query has from now on is NULL in the rows that stay; the table's properties stay as they are."""
    text = "@dp.materialized_view(replace_where='id > 1', table_properties={'team': 'sales'})\ndef t():\n    return spark.range(4)"
    case: PipelineCase = pipeline(text + "\n")
    case.rewrite(text.replace("id > 1", "id >= 0") + "\n")
    case.update()
    case.rewrite(text + ".withColumn('twice', F.col('id') * 2)\n")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("t") == [(0, None), (1, None), (2, 4), (3, 6)]
    assert DeltaTable(str(case.table("t"))).metadata().configuration["team"] == "sales"


@pytest.mark.parametrize(
    ("condition", "query", "error"),
    [
        ("'nowhere = 1'", "spark.range(3)", QueryFailed),
        ("'id >'", "spark.range(3)", QueryFailed),
        ("'rand() > 0.5'", "spark.range(3)", QueryFailed),
        ("'id IN (SELECT 1)'", "spark.range(3)", QueryFailed),
        ("'value > 1'", "spark.readStream.format('rate').load()", NotADataFrame),
        ("'id > 1', replace_using=['id'], sequence_by='id'", "spark.range(3)", UnsupportedArgument),
    ],
)
def test_conditions_that_can_not_be(pipeline, condition: str, query: str, error: type[Exception]):
    """What would not mean the same for the rows that leave and those that come is refused before anything is written."""
    case: PipelineCase = pipeline(f"@dp.table(replace_where={condition})\ndef t():\n    return {query}\n")
    with pytest.raises(error) as caught:
        case.manifest()
    assert caught.value.where
    assert caught.value.remedy
    assert case.nothing_written()
