"""Whether a table has a batch stands in its checksum file: a batch that is appended takes one Spark job, and none looks it up."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase
from tests.spark_jobs import jobs_since, last_job

from headwater_spark.java_classes import java_class

pytestmark = pytest.mark.usefixtures("adaptive")

TABLES = """
@dp.table
def landed():
    return spark.readStream.format("json").schema("id LONG").option("maxFilesPerTrigger", 1).load(LANDING)

@dp.table(partition_cols=["part"])
def parted():
    return spark.readStream.table("landed").withColumn("part", F.col("id") % 2)
"""


def _jobs_of_an_update(case: PipelineCase, spark: SparkSession) -> list[str]:
    before = last_job(spark)
    report = case.update()
    assert report.state == "COMPLETED", report.error
    return jobs_since(spark, before)


def _ids(case: PipelineCase, name: str) -> list[int]:
    return [id_ for (id_,) in case.rows(name, "id", "1")]


def _transactions(case: PipelineCase, spark: SparkSession, name: str, *, known: bool) -> tuple[bool, Any]:
    """What a fresh snapshot of a table says of its transactions; ``known``: after it was given those of the checksum."""
    jvm: Any = spark._jvm
    log = java_class(jvm, "org.apache.spark.sql.delta.DeltaLog")
    log.clearCache()
    snapshot = log.forTable(spark._jsparkSession, str(case.table(name))).unsafeVolatileSnapshot()
    given = known and java_class(jvm, "headwater.delta.KnownTransactions").give(snapshot)
    return given, snapshot.transactions().toString()


def test_a_batch_takes_one_job(pipeline: Any, spark: SparkSession) -> None:
    """One for each of three batches, and one for the table that takes them in at once. The checksum names the same transactions
    as the log. A batch that the table has is not written again, and where there is no checksum, Delta looks into the log.
    """
    case: PipelineCase = pipeline(TABLES)
    # After its first batch, a stream that starts again reads the source's first snapshot once more.
    for first in (0, 2):
        case.land([{"id": first}, {"id": first + 1}])
        assert case.update().state == "COMPLETED"
    for batch in range(3):
        case.land([{"id": 4 + batch}])
    jobs = _jobs_of_an_update(case, spark)
    assert len(jobs) == 4, jobs

    for name, last in (("landed", 4), ("parted", 2)):
        given, known = _transactions(case, spark, name, known=True)
        assert given
        assert known == _transactions(case, spark, name, known=False)[1]
        assert known.endswith(f"-> {last})"), known

    # A driver that was killed after its commit to the table, and before Spark marked the batch as done.
    (case.checkpoint("landed").epoch_folder(0) / "commits" / "4").unlink()
    assert case.update().state == "COMPLETED"
    assert _ids(case, "landed") == _ids(case, "parted") == list(range(7))

    for name in ("landed", "parted"):
        for checksum in (case.table(name) / "_delta_log").glob("*.crc"):
            checksum.unlink()
    java_class(spark._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
    assert not _transactions(case, spark, "landed", known=True)[0]
    (case.checkpoint("landed").epoch_folder(0) / "commits" / "4").unlink()
    case.land([{"id": 7}])
    assert len(_jobs_of_an_update(case, spark)) > 2
    assert _ids(case, "landed") == _ids(case, "parted") == list(range(8))


JUDGED = """
@dp.table
def landed():
    return spark.readStream.schema("id LONG, team STRING").option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
@dp.expect_or_quarantine("even", "id % 2 = 0")
def kept():
    return dp.read_stream("landed")
"""


def test_nothing_is_looked_up_for_a_quarantine(pipeline: Any, spark: SparkSession) -> None:
    """Of batches after the first ones no table's state is computed, neither for the table nor for its quarantine; a batch that comes
    again is in both once.
    """
    case: PipelineCase = pipeline(JUDGED)
    for first in (0, 2):
        case.land([{"id": first}, {"id": first + 1}])
        assert case.update().state == "COMPLETED"
    for first in (4, 6):
        case.land([{"id": first}, {"id": first + 1}])
    jobs = _jobs_of_an_update(case, spark)
    assert jobs
    assert [job for job in jobs if "Compute snapshot" in job] == []
    (case.checkpoint("kept").epoch_folder(0) / "commits" / "2").unlink()
    assert case.update().state == "COMPLETED"
    assert _ids(case, "kept") == [0, 2, 4, 6]
    assert _ids(case, "kept_quarantine") == [1, 3, 5, 7]
