"""Lag and freshness of whole pipelines."""

from __future__ import annotations

import json

import pytest

from headwater.arrivals.unread import unread
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.doctor.start_facts import stream_sources
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import DatasetEntry, FlowEntry, SourceEntry, portable
from headwater.graph.pipeline_project import open_project
from headwater.metrics.freshness import freshness_as_far_as_known, pipeline_freshness
from headwater.metrics.lag import flow_lag, over_limit, pipeline_lag
from headwater.metrics.retention import retention_use
from headwater.metrics.watermark import pipeline_watermarks

from .conftest import write_rows


def lag_of(pipeline, name):
    return next(lag for lag in pipeline_lag(pipeline.project, pipeline.manifest) if lag.flow == name)


def test_nothing_behind(done):
    """After an update each flow is at its sources' heads."""
    lags = pipeline_lag(done.project, done.manifest)
    assert [(lag.flow, lag.backlog.moved, lag.backlog.seconds) for lag in lags] == [
        ("bronze", False, 0.0),
        ("silver", False, 0.0),
        ("gold", False, 0.0),
    ]
    assert over_limit(lags, records=0, seconds=0) == []
    json.dumps([lag.as_dict() for lag in lags])


def test_each_kind_behind(done):
    """New files, new commits for a stream, and new commits for a view each show as lag of their own flow."""
    done.land("b.json")
    assert lag_of(done, "bronze").backlog.files == 1
    write_rows(done.table("bronze"), 3, 4, 5)
    assert lag_of(done, "silver").backlog.records == 3
    write_rows(done.table("silver"), 3)
    gold = lag_of(done, "gold").backlog
    assert (gold.moved, gold.versions, gold.records) == (True, 1, 1)
    breaches = over_limit(pipeline_lag(done.project, done.manifest), records=2)
    assert [(breach.flow, breach.value) for breach in breaches] == [("silver", 3)]
    assert "silver: 3 records of lag, limit 2" in str(breaches[0])


def test_a_limit_of_nothing_is_a_limit(done):
    """Whoever allows no lag at all is told of the first file."""
    done.land("b.json")
    (breach,) = over_limit(pipeline_lag(done.project, done.manifest), files=0)
    assert (breach.flow, breach.value, breach.limit) == ("bronze", 1, 0)


def test_a_broker_that_asks_for_a_login_is_not_waited_for(pipeline, monkeypatch):
    """Spark logs in with the options of the read, which are kept nowhere: without a login in the spec neither the lag nor the checks
    before a start ask the broker, and the lag says why.
    """

    def asked(*_: object) -> None:
        raise AssertionError("the broker was asked")

    monkeypatch.setattr("confluent_kafka.Consumer", asked)
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", asked)
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:9", "kafka.security.protocol": "SASL_SSL", "subscribe": "orders",
        "startingOffsets": "earliest",
    }  # fmt: skip
    source = SourceEntry(kind=SourceKind.KAFKA, streaming=True, name="orders", options=options)
    flow = FlowEntry(name="hub", target="hub", streaming=True, sources=(source,))
    assert "requires a login" in (flow_lag(pipeline.project, flow).backlog.unknown or "")
    (stream,) = stream_sources(pipeline.project, flow)
    assert stream.topics is not None
    assert (stream.topics.ids(["orders"]), stream.topics.bounds([("orders", 0)])) == ({}, {})


def test_unknown_lag_is_over_every_limit(done):
    """A lag that can't be known breaks the limit and says why, instead of passing in silence."""
    (done.checkpoint("silver").epoch_folder(0) / "offsets" / "0").write_text("")
    (breach,) = over_limit(pipeline_lag(done.project, done.manifest), records=10)
    assert breach.value is None
    assert "the file is empty" in str(breach)


def test_never_run(pipeline):
    """A pipeline that never ran has everything before it, and where tables are missing says so."""
    pipeline.land("a.json")
    lags = {lag.flow: lag.backlog for lag in pipeline_lag(pipeline.project, pipeline.manifest)}
    assert lags["bronze"].files == 1
    assert "no Delta table" in (lags["silver"].unknown or "")


def test_freshness(done):
    """Freshness is the age of the newest commit of data; a table that is not there has none."""
    import shutil

    from deltalake import DeltaTable

    DeltaTable(str(done.table("bronze"))).alter.set_table_properties({"delta.appendOnly": "false"})
    shutil.rmtree(done.table("gold"))
    bronze, silver, gold = pipeline_freshness(done.project, done.manifest)
    assert (bronze.version, silver.version, gold.version) == (0, 0, None)
    assert bronze.seconds is not None
    assert 0 <= bronze.seconds < 60
    assert gold.seconds is None


def test_a_log_that_cant_be_read_is_one_tables_trouble(done):
    """The age of the others is shown; who needs all of them is told that it can't be known."""
    for value in (5, 6):
        write_rows(done.table("silver"), value)
    (done.table("silver") / "_delta_log" / f"{1:020d}.json").unlink()
    bronze, silver, gold = freshness_as_far_as_known(done.project, done.manifest)
    assert (bronze.version, gold.version) == (0, 0)
    assert silver.seconds is None
    assert "can't be read" in (silver.unknown or "")
    assert "unknown" in silver.as_dict()
    assert "unknown" not in gold.as_dict()
    with pytest.raises(SourceUnreachable):
        pipeline_freshness(done.project, done.manifest)


def test_committed_manifest_names_values_by_keys(pipeline):
    """Places that the committed manifest spells with keys of the configuration are looked up for the lag."""
    pipeline.land("a.json")
    spec = pipeline.project.spec_file
    spec.write_text(spec.read_text() + f"configuration: {{landing: {pipeline.landing}}}\n")
    project = open_project(
        pipeline.project.folder, storage=pipeline.project.storage, warehouse=pipeline.project.warehouse
    )
    manifest = portable(pipeline.manifest, project.configuration)
    assert manifest.flows[0].sources[0].path == "${landing}"
    assert pipeline_lag(project, manifest)[0].backlog.files == 1


def test_a_temporary_view_has_no_lag(done):
    """A view's query is part of the flows that read it and keeps no position: nothing that looks at streams counts all it reads as unread."""
    views = [
        FlowEntry(name=name, target=name, streaming=True, sources=done.flow(like).sources)
        for name, like in (("landed", "bronze"), ("changes", "silver"))
    ]
    datasets = [DatasetEntry(name=view.name, kind=DatasetKind.TEMPORARY_VIEW) for view in views]
    manifest = done.manifest.model_copy(
        update={
            "datasets": (*done.manifest.datasets, *datasets),
            "flows": (*done.manifest.flows, *views),
        }
    )
    assert over_limit(pipeline_lag(done.project, manifest), records=0, files=0, seconds=0) == []
    assert [use.flow for use in retention_use(done.project, manifest)] == ["silver"]
    assert [mark.flow for mark in pipeline_watermarks(done.project, manifest)] == ["bronze", "silver"]
    assert unread(done.project, manifest).sources == ()
