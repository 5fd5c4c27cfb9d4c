"""Lineage: what tables are made of, in names that other tools know."""

from __future__ import annotations

from pathlib import Path

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.graph.lineage import lineage_edges
from headwater.graph.manifest import ColumnEntry, DatasetEntry, FlowEntry, Manifest, SourceEntry

WAREHOUSE = Path("/data/tables")
ID = (ColumnEntry(name="id", type="int"),)


def source(kind, **more):
    return SourceEntry(kind=kind, streaming=True, **more)


BRONZE = source(SourceKind.DATASET, name="bronze", location="shop/bronze")
MANIFEST = Manifest(
    headwater_version="0.1.0",
    pipeline_id="orders",
    pipeline_name="orders",
    schema_name="shop",
    source_hash="",
    datasets=(
        DatasetEntry(name="bronze", kind=DatasetKind.STREAMING_TABLE, location="shop/bronze", columns=ID),
        DatasetEntry(name="aside", kind=DatasetKind.TEMPORARY_VIEW),
        DatasetEntry(name="gold", kind=DatasetKind.MATERIALIZED_VIEW, location="shop/gold"),
        DatasetEntry(
            name="out",
            kind=DatasetKind.SINK,
            sink_format="kafka",
            sink_options={"kafka.bootstrap.servers": "b1:9092,b2:9092", "topic": "out"},
        ),
        DatasetEntry(name="called", kind=DatasetKind.SINK, sink_format="foreach_batch"),
    ),
    flows=(
        FlowEntry(
            name="bronze",
            target="bronze",
            streaming=True,
            sources=(
                source(SourceKind.KAFKA, name="a, b", options={"kafka.bootstrap.servers": "b1:9092"}),
                source(SourceKind.FILES, path="/landing/x"),
                source(SourceKind.FILES, path="s3://bucket/in/y?*.json"),
                source(SourceKind.OTHER, format="jdbc"),
            ),
        ),
        FlowEntry(name="gold", target="gold", streaming=False, inputs=("aside",), sources=(BRONZE,)),
        FlowEntry(name="send", target="out", streaming=True, inputs=("bronze",), sources=(BRONZE,)),
        FlowEntry(name="call", target="called", streaming=True, inputs=("bronze",), sources=(BRONZE,)),
    ),
)


def pairs(nodes):
    return [(node.namespace, node.name) for node in nodes]


def test_edges_of_one_table():
    """A table read through a view is the input, with its columns; the table is the output."""
    edges = lineage_edges(MANIFEST, WAREHOUSE, ["gold"])
    assert pairs(edges.inputs) == [("file", "/data/tables/shop/bronze")]
    assert edges.inputs[0].columns == ID
    assert pairs(edges.outputs) == [("file", "/data/tables/shop/gold")]


def test_a_quarantine_is_an_output():
    """What a table keeps out is written beside it."""
    bronze = MANIFEST.datasets[0].model_copy(update={"quarantine": "shop/bronze_quarantine"})
    keeping = MANIFEST.model_copy(update={"datasets": (bronze, *MANIFEST.datasets[1:])})
    assert pairs(lineage_edges(keeping, WAREHOUSE, ["bronze"]).outputs) == [
        ("file", "/data/tables/shop/bronze"),
        ("file", "/data/tables/shop/bronze_quarantine"),
    ]


def test_sources_outside_are_named_by_their_place():
    """Topics by broker, files by folder or bucket; what has no place that is known is left out."""
    edges = lineage_edges(MANIFEST, WAREHOUSE, ["bronze"])
    assert pairs(edges.inputs) == [
        ("kafka://b1:9092", "a"),
        ("kafka://b1:9092", "b"),
        ("file", "/landing/x"),
        ("s3://bucket", "in/y?*.json"),
    ]


def test_of_a_whole_pipeline_only_the_ends_are_inputs():
    """Of all datasets together, tables in between are outputs and no inputs; a function as a sink is not a node."""
    edges = lineage_edges(MANIFEST, WAREHOUSE)
    assert len(edges.inputs) == 4
    assert pairs(edges.outputs) == [
        ("file", "/data/tables/shop/bronze"),
        ("file", "/data/tables/shop/gold"),
        ("kafka://b1:9092", "out"),
    ]
    assert lineage_edges(MANIFEST, WAREHOUSE, ["called"]).outputs == ()
