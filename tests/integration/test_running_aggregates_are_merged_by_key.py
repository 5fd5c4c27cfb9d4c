"""A running aggregation is merged into its table by its grouping keys, where the query has them."""

from __future__ import annotations

import json

from deltalake import DeltaTable

from headwater_spark.execution import foreach_batch

EVENTS = """
def events():
    return (spark.readStream.schema("user STRING, amount INT, at TIMESTAMP").option("maxFilesPerTrigger", 1).json(LANDING))
"""
TOTALS = (
    EVENTS
    + """
@dp.table
def totals():
    return events().withWatermark("at", "1 hour").groupBy("user").agg(F.sum("amount").alias("total"))
"""
)


PARTITIONED = (
    EVENTS
    + """
@dp.table(partition_cols=["user"])
def totals():
    return events().groupBy("user").agg(F.sum("amount").alias("total"))

@dp.temporary_view
def changes():
    return events()

dp.create_streaming_table("latest", partition_cols=["user"])
dp.create_auto_cdc_flow(target="latest", source="changes", keys=["user"], sequence_by="at")
"""
)


def event(user, amount, at="2026-01-01 00:00:00"):
    return {"user": user, "amount": amount, "at": at}


def history(case, name):
    """The commits of a table, oldest first."""
    return list(reversed(DeltaTable(str(case.table(name))).history()))


def test_running_totals(pipeline, monkeypatch):
    """Each batch touches its own keys, NULL among them; late rows count; rows out are those that were merged; a merge carries its
    flow's transaction and the batch's end offsets; and a batch that comes again after its commit is in the table once.
    """
    case = pipeline(TOTALS)
    case.land([event("a", 1), event("b", 2), event(None, 5)])
    case.land([event("a", 10, "2026-01-02 00:00:00")])
    report = case.update()
    assert case.rows("totals") == [("a", 11), ("b", 2), (None, 5)]
    assert (report["totals"].input_rows, report["totals"].output_rows) == (4, 4)
    case.land([event(None, 1, "2020-01-01 00:00:00"), event("c", 3)])
    report = case.update()
    assert case.rows("totals") == [("a", 11), ("b", 2), ("c", 3), (None, 6)]
    assert report["totals"].output_rows == 2
    progress = [
        e["details"]["flow_progress"].get("metrics", {})
        for e in case.events(flow="totals", event_type="flow_progress")
    ]
    assert sum(metrics.get("num_upserted_rows", 0) for metrics in progress) == 6
    assert case.manifest().flows[0].output_mode == "update"
    assert case.manifest().flows[0].merge_keys == ("user",)
    check_commits(case)
    check_repetition(case, monkeypatch)


def test_a_key_that_its_partition_does_not_keep(pipeline):
    """Delta stores the empty text as NULL there, so that no later batch would meet its row: the batch fails, and says why."""
    case = pipeline(PARTITIONED)
    case.land([event("a", 1)])
    case.land([event("", 2), event("a", 3)])
    report = case.update()
    assert "'' or '__HIVE_DEFAULT_PARTITION__'" in report["totals"].error.what
    assert report["latest"].error.condition == "NULL_KEY"
    assert (case.rows("totals"), case.rows("latest", "user, amount")) == ([("a", 1)], [("a", 1)])


def check_commits(case):
    """The commit says which batch it was, for people and repairs."""
    merges = [commit for commit in history(case, "totals") if commit["operation"] == "MERGE"]
    metadata = json.loads(merges[0]["userMetadata"])
    assert [metadata[name] for name in ("pipeline", "flow", "epoch", "batch")] == ["case", "totals", 0, 0]
    assert metadata["end_offsets"] == [{"logOffset": 0}]
    assert DeltaTable(str(case.table("totals"))).transaction_version("case.totals@0") >= 0


def check_repetition(case, monkeypatch):
    """The driver dies after the commit of a batch and before Spark's own mark: the batch comes again, once in the table."""
    case.land([event("a", 2)])
    write = foreach_batch.BatchWriter.__call__

    def dies_after(self, rows, batch_id):
        write(self, rows, batch_id)
        self.error = OSError("No space left on device")
        raise self.error

    with monkeypatch.context() as patched:
        patched.setattr(foreach_batch.BatchWriter, "__call__", dies_after)
        report = case.update()
    assert report.statuses == {"totals": "FAILED"}
    assert report.error.transient
    rows = [("a", 13), ("b", 2), ("c", 3), (None, 6)]
    assert case.rows("totals") == rows
    version = case.version("totals")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("totals") == rows
    assert case.version("totals") == version


QUERIES = {
    "renamed": (
        'events().groupBy(F.col("user").alias("who")).count().select(F.col("who").alias("name"), "count")',
        "update",
        ("name",),
    ),
    "windows_without_watermark": (
        'events().groupBy(F.window("at", "1 hour"), "user").count().select("window.start", "user", "count")',
        "update",
        ("start", "user"),
    ),
    "whole_window": ('events().groupBy(F.window("at", "1 hour")).count()', "update", ("window",)),
    "expression": (
        'events().groupBy(F.upper("user").alias("u")).agg(F.max("amount").alias("m"))',
        "update",
        ("u",),
    ),
    "key_left_out": ('events().groupBy("user").count().select("count")', "complete", ()),
    "having": ('events().groupBy("user").count().where("count > 1")', "complete", ()),
    "no_keys": ('events().groupBy().agg(F.sum("amount").alias("s"))', "complete", ()),
    "ordered": ('events().groupBy("user").count().orderBy("user")', "complete", ()),
    "closed_windows": (
        'events().withWatermark("at", "1 hour").groupBy(F.window("at", "1 hour")).count()',
        "append",
        (),
    ),
    "rows": ('events().where("amount > 1")', "append", ()),
}


def test_which_queries_are_merged(pipeline):
    """A query is merged where its keys are columns of the result and nothing above the aggregation takes rows away."""
    source = "".join(
        f"\n@dp.table\ndef {name}():\n    return {query}\n" for name, (query, _, _) in QUERIES.items()
    )
    flows = {flow.name: flow for flow in pipeline(EVENTS + source).manifest().flows}
    assert {name: (flow.output_mode, flow.merge_keys) for name, flow in flows.items()} == {
        name: (mode, keys) for name, (_, mode, keys) in QUERIES.items()
    }
