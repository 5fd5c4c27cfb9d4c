"""The `spark` of a source is a SparkSession like any other, except that its reads know the datasets."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.errors import UnsupportedSource
from headwater_spark.facade.pipeline_session import PipelineSession

# Quick where a session is there: they run each time.

BRONZE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT, name STRING").json(LANDING)
"""


def inputs(case, flow: str) -> tuple[str, ...]:
    """The datasets that a flow reads."""
    return next(entry for entry in case.manifest().flows if entry.name == flow).inputs


@pytest.mark.parametrize(
    "read",
    [
        'spark.read.table("bronze")',
        'spark.table("bronze")',
        'dp.read("bronze")',
        'spark.read.format("delta").option("a", "b").options(c="d").table("shop.bronze")',
        'spark.read.option("a", "b").schema("id INT").table("bronze")',
        'spark.newSession().read.table("bronze")',
        'spark.getActiveSession().read.table("bronze")',
        'type(spark).mro()[1].getActiveSession().sql("select * from bronze")',
        'F.broadcast(spark.table("bronze")).sparkSession.table("bronze")',
        'spark.builder.getOrCreate().table("bronze")',
        'spark.range(1).sparkSession.table("bronze")',
    ],
)
def test_every_way_to_a_batch_read(pipeline, read: str):
    """Whatever chain of calls leads to `table`, the read is the dataset's."""
    case = pipeline(BRONZE + f"\n@dp.table\ndef silver():\n    return {read}\n")
    assert inputs(case, "silver") == ("bronze",)


@pytest.mark.parametrize(
    "read",
    [
        'spark.readStream.table("bronze")',
        'dp.read_stream("bronze")',
        'spark.readStream.format("delta").option("maxFilesPerTrigger", 1).table("bronze")',
        'spark.readStream.options(ignoreDeletes=True).option("x", 1).table("bronze")',
    ],
)
def test_every_way_to_a_stream(pipeline, read: str):
    """The same for streams, with options before it."""
    case = pipeline(BRONZE + f"\n@dp.table\ndef silver():\n    return {read}\n")
    assert inputs(case, "silver") == ("bronze",)


def test_options_survive_to_the_real_read(pipeline):
    """Options and schema given in a chain reach Spark's source: two files of one line each make two batches."""
    case = pipeline(
        """
@dp.table
def bronze():
    reader = spark.readStream.format("json").option("maxFilesPerTrigger", 1)
    return reader.options(multiLine=False).schema("id INT").load(LANDING)

@dp.table
def silver():
    return spark.readStream.option("maxFilesPerTrigger", 1).table("bronze")
"""
    )
    case.land([{"id": 1}])
    case.land([{"id": 2}])
    report = case.update()
    assert report["bronze"].batches == 2
    assert report["silver"].batches == 2
    assert case.rows("silver") == [(1,), (2,)]


def test_it_is_a_session(spark: SparkSession):
    """It passes for a SparkSession, and its frames lead back to it and join with others."""
    facade = PipelineSession.over(spark)
    assert isinstance(facade, SparkSession)
    frame = facade.createDataFrame([(1,)], "id INT")
    assert frame.sparkSession is facade
    assert frame.join(spark.range(3), "id").count() == 1


def test_what_a_source_sets_stays_with_it(spark: SparkSession):
    """Confs and temporary views of the facade don't reach the update's own session."""
    facade = PipelineSession.over(spark)
    facade.conf.set("spark.sql.shuffle.partitions", "7")
    facade.range(1).createOrReplaceTempView("only_in_the_facade")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert not spark.catalog.tableExists("only_in_the_facade")


@pytest.mark.parametrize(
    "read",
    [
        'spark.read.format("cloudFiles").option("cloudFiles.format", "json").load("/x")',
        'spark.read.load("/x", format="cloudFiles")',
        'spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("s3://bucket/x")',
        'spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load()',
        'spark.readStream.format("pubsub").load()',
        'spark.read.format("kinesis").option("streamName", "orders").load()',
    ],
)
def test_formats_that_open_spark_lacks(pipeline, read: str):
    """They are refused by name with what to use instead, at the user's line."""
    case = pipeline(f"@dp.table\ndef bronze():\n    return {read}\n")
    with pytest.raises(UnsupportedSource) as caught:
        case.manifest()
    assert caught.value.where == case.line_of(read)
    assert caught.value.remedy


def test_configuration_is_readable(pipeline):
    """spark.conf.get and dbutils.widgets give the values of the spec's configuration."""
    case = pipeline(
        """
assert spark.conf.get("color") == "red"
assert spark.conf.get("missing", "none") == "none"
assert dbutils.widgets.get("color") == "red"

@dp.table
def bronze():
    return spark.range(1).select(F.lit(spark.conf.get("color")).alias("color"))
""",
        spec="  color: red\n",
    )
    assert [column.name for column in case.manifest().dataset("bronze").columns] == ["color"]


@pytest.mark.parametrize("read", ["read", "readStream"])
def test_changes_of_a_table(pipeline, read: str):
    """Spark 4.2's ``changes`` asks a catalog that has no table of the pipeline; the option that works is named."""
    case = pipeline(f"@dp.table\ndef t():\n    return spark.{read}.changes('orders')\n")
    with pytest.raises(UnsupportedSource, match="changes") as caught:
        case.manifest()
    assert caught.value.where == case.line_of("changes('orders')")
    assert "readChangeFeed" in caught.value.remedy
