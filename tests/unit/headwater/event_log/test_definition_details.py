"""The lineage and the definitions in the event log, from a manifest."""

from __future__ import annotations

import json

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.source import SourceKind
from headwater.event_log.definition_details import (
    dataset_definition,
    flow_definition,
    flow_type,
    sink_definition,
)
from headwater.event_log.redaction import details_json
from headwater.graph.manifest import (
    ColumnEntry,
    DatasetEntry,
    ExpectationEntry,
    FlowEntry,
    Manifest,
    SourceEntry,
)

TABLE = DatasetEntry(
    name="bronze",
    kind=DatasetKind.STREAMING_TABLE,
    columns=(ColumnEntry(name="id", type="int"),),
    expectations=(ExpectationEntry(name="known", constraint="id > 0", action=ViolationAction.DROP),),
)
VIEW = DatasetEntry(name="gold", kind=DatasetKind.MATERIALIZED_VIEW)
ASIDE = DatasetEntry(name="aside", kind=DatasetKind.TEMPORARY_VIEW)
SINK = DatasetEntry(
    name="out",
    kind=DatasetKind.SINK,
    sink_format="kafka",
    sink_options={"topic": "out", "kafka.password": "hunter2"},
)
KAFKA = SourceEntry(kind=SourceKind.KAFKA, streaming=True, name="orders", format="kafka")
FLOWS = (
    FlowEntry(name="bronze", target="bronze", streaming=True, sources=(KAFKA,)),
    FlowEntry(name="more", target="bronze", streaming=True, once=True, inputs=("aside",)),
    FlowEntry(name="gold", target="gold", streaming=False, inputs=("bronze", "aside")),
    FlowEntry(name="send", target="out", streaming=True, inputs=("bronze",)),
)
MANIFEST = Manifest(
    headwater_version="0.1.0",
    pipeline_id="orders",
    pipeline_name="orders",
    schema_name="shop",
    source_hash="",
    datasets=(TABLE, VIEW, ASIDE, SINK),
    flows=FLOWS,
)


def body(flow, **more):
    return flow_definition(MANIFEST, flow, **more)["flow_definition"]


def test_lineage_of_a_flow():
    """A flow's record names inputs, output, schema, plan and settings; a sink is named as one."""
    bronze = body(FLOWS[0], explain_text="Relation", spark_conf={"a.b": "1"})
    assert bronze["output_dataset"] == "bronze"
    assert bronze["input_datasets"] == []
    assert bronze["sources"] == [{"kind": "kafka", "name": "orders", "streaming": True}]
    assert bronze["schema"] == [{"name": "id", "type": "int", "nullable": True}]
    assert (bronze["explain_text"], bronze["spark_conf"], bronze["once"]) == ("Relation", {"a.b": "1"}, False)
    assert body(FLOWS[1])["once"]
    assert body(FLOWS[2])["input_datasets"] == [{"name": "bronze"}, {"name": "aside"}]
    assert (body(FLOWS[3])["output_sink"], bronze["output_sink"]) == ("out", None)


@pytest.mark.parametrize(
    ("mode", "target", "kind", "expected"),
    [
        ("append", TABLE, "default", "APPEND"),
        ("complete", TABLE, "default", "COMPLETE"),
        ("update", TABLE, "default", "CHANGE"),
        ("append", TABLE, "changes", "CHANGE"),
        ("append", TABLE, "snapshots", "SNAPSHOT_CHANGE"),
        ("append", VIEW, "default", "MATERIALIZED_VIEW"),
        ("append", ASIDE, "default", "VIEW"),
        ("append", SINK, "append", "APPEND"),
    ],
)
def test_flow_types_are_lakeflows(mode, target, kind, expected):
    """What a flow does is said in Lakeflow's six words."""
    flow = FlowEntry(name="f", target=target.name, streaming=True, output_mode=mode)
    assert flow_type(flow, target, kind) == expected


def test_tables_views_and_sinks():
    """Each dataset's record has its type, how many flows fill it, and its rules."""
    table = dataset_definition(MANIFEST, TABLE)["dataset_definition"]
    assert (table["dataset_type"], table["num_flows"]) == ("STREAMING_TABLE", 2)
    assert table["expectations"] == [{"name": "known", "constraint": "id > 0", "action": "drop"}]
    kinds = [
        dataset_definition(MANIFEST, entry)["dataset_definition"]["dataset_type"] for entry in (VIEW, ASIDE)
    ]
    assert kinds == ["MATERIALIZED_VIEW", "VIEW"]
    assert sink_definition(SINK)["sink_definition"]["format"] == "kafka"


def test_no_secret_is_in_them():
    """Options and settings with secret names, and passwords in a plan's text, do not reach the log."""
    sink = details_json(sink_definition(SINK))
    flow = details_json(
        body(FLOWS[0], explain_text="url password=hunter2,", spark_conf={"my.secret": "hunter2"})
    )
    assert "hunter2" not in sink + flow
    assert json.loads(sink)["sink_definition"]["options"]["topic"] == "out"
