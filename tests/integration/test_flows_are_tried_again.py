"""A flow that failed of something that passes is tried again in the same update; nothing is written twice."""

from __future__ import annotations

from headwater_spark.execution import remedies

SOURCE = """
import pathlib

@dp.foreach_batch_sink(name="outside")
def outside(df, batch_id):
    tried = pathlib.Path(LANDING).parent / "tried"
    tried.write_text(tried.read_text() + "x" if tried.exists() else "x")
    if len(tried.read_text()) < 3:
        raise ConnectionError("Connection refused")

@dp.append_flow(target="outside", name="send")
def send():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.table(table_properties={"pipelines.maxFlowRetryAttempts": "5"})
def wrong():
    return spark.readStream.schema("id INT").json(LANDING).select(F.raise_error(F.lit("always")).alias("x"))
"""


def test_what_passes_is_tried_again(pipeline, monkeypatch):
    """Two failed tries, then a good one; what can't pass fails at once; the event log has one end of each flow."""
    monkeypatch.setattr(remedies, "FIRST_WAIT_SECONDS", 0.1)
    case = pipeline(SOURCE, spec="  pipelines.maxFlowRetryAttempts: 2\n")
    case.land([{"id": 1}])
    report = case.update()
    assert report.statuses == {"send": "COMPLETED", "wrong": "FAILED"}
    assert (case.root / "tried").read_text() == "xxx"
    again = case.events(event_type="operation_progress", containing="FLOW_RETRY")
    assert [(r["origin"]["flow_name"], r["level"]) for r in again] == [("send", "WARN")] * 2
    ends = [
        r for r in case.events(flow="send", event_type="flow_progress") if "COMPLETED" in str(r["details"])
    ]
    assert (len(ends), report["send"].batches) == (1, 1)
