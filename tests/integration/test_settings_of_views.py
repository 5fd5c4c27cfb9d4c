"""Spark settings of a temporary view are in force in the queries that read it, batch and stream; so are those of changes."""

from __future__ import annotations

import pytest

from headwater.errors import UnsupportedArgument

SOURCE = """
@dp.temporary_view(spark_conf={"spark.sql.ansi.enabled": "false"})
def numbers():
    return dp.read("lines").select(F.col("text").cast("int").alias("n"))

@dp.temporary_view
def between():
    return dp.read("numbers")

@dp.temporary_view(spark_conf={"spark.sql.ansi.enabled": "false"})
def arriving():
    return dp.read_stream("lines").select(F.col("text").cast("int").alias("n"))

@dp.table
def lines():
    return spark.readStream.schema("text STRING").json(LANDING)

@dp.materialized_view
def batch():
    return dp.read("between")

@dp.table
def stream():
    return dp.read_stream("arriving")

@dp.temporary_view
def changes():
    return dp.read_stream("lines").select("text", F.col("text").cast("int").alias("n"), F.lit(1).alias("at"))

dp.create_streaming_table("merged")
dp.create_auto_cdc_flow("merged", "changes", ["text"], "at", spark_conf={"spark.sql.ansi.enabled": "false"})

@dp.materialized_view
def strict():
    return dp.read("lines").select(F.col("text").cast("int").alias("n"))
"""


def test_views_bring_their_settings(pipeline):
    """A cast that ANSI refuses gives NULL below the view that turns it off, through another view too; beside them it fails."""
    case = pipeline(SOURCE)
    case.land([{"text": "1"}, {"text": "x"}])
    report = case.update()
    assert {name: report[name].status.value for name in ("batch", "stream", "merged", "strict")} == {
        "batch": "COMPLETED", "stream": "COMPLETED", "merged": "COMPLETED", "strict": "FAILED",
    }  # fmt: skip
    for table in ("batch", "stream", "merged"):
        assert sorted(case.rows(table, "n"), key=str) == [(1,), (None,)]
    case.rewrite(
        SOURCE.replace(
            "@dp.materialized_view\ndef batch",
            '@dp.materialized_view(spark_conf={"spark.sql.ansi.enabled": "true"})\ndef batch',
        )
    )
    with pytest.raises(
        UnsupportedArgument, match=r"'numbers' sets spark\.sql\.ansi\.enabled to 'false'"
    ) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("@dp.temporary_view(spark_conf")
