"""A driver that was frozen after its last check of the lease writes nothing into what another one has filled anew since."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend

SOURCE = """
@dp.table
def plain():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.table
@dp.expect_or_quarantine("small", "id < 100")
def judged():
    return spark.readStream.schema("id INT").json(LANDING)
"""


def old_driver(case: PipelineCase, spark: Any, gate: Path) -> StreamingQuery:
    """The query of the epoch before, as its driver would go on with it; its rows come when ``gate`` is there."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType

    path = str(gate)

    @F.udf(IntegerType())
    def held(number: int) -> int:
        import time
        from pathlib import Path as Here

        Here(f"{path}.waits").touch()
        while not Here(path).exists():
            time.sleep(0.05)
        return number

    rows = spark.readStream.schema("id INT").json(str(case.landing)).select(held("id").alias("id"))
    return (
        rows.writeStream.format("delta")
        .option("checkpointLocation", str(case.checkpoint("plain").epoch_folder(0)))
        .trigger(availableNow=True)
        .start(str(case.table("plain")))
    )


def test_of_the_delta_sink_and_of_foreach_batch(pipeline, spark: Any):
    """Its commit is refused where it was under way, and left out where it comes later; the table equals the batch."""
    case: PipelineCase = pipeline(SOURCE)
    case.land([{"id": 1}, {"id": 200}])
    assert case.update().state == "COMPLETED"
    case.land([{"id": 2}, {"id": 300}])
    gate = case.root / "gate"
    under_way = old_driver(case, spark, gate)
    waits = threading.Event()
    while not Path(f"{gate}.waits").exists():
        assert under_way.isActive, under_way.exception()
        waits.wait(0.05)
    report = case.update(full_refresh_all=True)
    assert (report.state, report.error) == ("COMPLETED", None)
    gate.touch()
    refused = ""
    try:
        under_way.awaitTermination(60)
    except Exception as error:
        refused = str(error)
    assert "DELTA_CONCURRENT_TRANSACTION" in refused or "ConcurrentTransaction" in refused, refused
    old_driver(case, spark, gate).awaitTermination(60)
    later = BatchTransaction(FlowIdentity("case", "judged").application(0), 1, "{}")
    target = DeltaAppend(case.table("judged"))
    assert target.has(later)
    target.write(spark.createDataFrame([(2,)], "id INT"), later)
    assert case.rows("plain") == [(1,), (2,), (200,), (300,)]
    assert case.rows("judged") == [(1,), (2,)]
    assert case.rows("judged_quarantine", "id") == [(200,), (300,)]
    case.land([{"id": 3}])
    versions = [case.version(name) for name in ("plain", "judged")]
    assert case.update().state == "COMPLETED"
    assert case.rows("plain", "count(*)") == [(5,)]
    # The ids are used up once.
    assert [case.version(name) for name in ("plain", "judged")] == [version + 1 for version in versions]
