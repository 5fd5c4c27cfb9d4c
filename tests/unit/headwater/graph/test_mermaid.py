"""The graph as Mermaid text: what is a box, and which lines are full."""

from __future__ import annotations

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.graph.mermaid import mermaid

TABLE, VIEW = DatasetKind.STREAMING_TABLE, DatasetKind.MATERIALIZED_VIEW


def lines_of(
    datasets: dict[str, DatasetKind], *flows: FlowEntry, quarantine: tuple[str, ...] = ()
) -> list[str]:
    """The lines below the heading."""
    entries = [
        DatasetEntry(name=name, kind=kind, quarantine=name if name in quarantine else None)
        for name, kind in datasets.items()
    ]
    manifest = Manifest(
        headwater_version="0.1.0", pipeline_id="p", pipeline_name="p", schema_name="shop", source_hash="", datasets=tuple(entries),
        flows=flows,
    )  # fmt: skip
    return [line.strip() for line in mermaid(manifest).splitlines()[1:]]


def read(name: str, *, streaming: bool, kind: SourceKind = SourceKind.DATASET) -> SourceEntry:
    """One read of a flow."""
    return SourceEntry(kind=kind, name=name, streaming=streaming)


def test_each_read_has_its_own_line():
    """A flow that reads one table as a stream and another as a whole: the first line is full, the second dotted."""
    sources = (read("orders", streaming=True), read("customers", streaming=False))
    flow = FlowEntry(
        name="out", target="out", streaming=True, inputs=("orders", "customers"), sources=sources
    )
    lines = lines_of({"orders": TABLE, "customers": VIEW, "out": TABLE}, flow)
    assert lines[3:] == ["d0 --> d2", "d1 -.-> d2"]


def test_a_read_that_is_no_source_is_as_its_flow():
    """Of a view that is not stored, a flow has no source of its own: the line is that of the flow."""
    for streaming, line in ((True, "d0 --> d1"), (False, "d0 -.-> d1")):
        flow = FlowEntry(name="out", target="out", streaming=streaming, inputs=("clicks",), sources=())
        assert lines_of({"clicks": DatasetKind.TEMPORARY_VIEW, "out": TABLE}, flow)[2:] == [line]


def test_a_table_that_is_read_twice():
    """As a stream and as a whole: the line is full."""
    sources = (read("orders", streaming=False), read("orders", streaming=True))
    flow = FlowEntry(name="out", target="out", streaming=True, inputs=("orders",), sources=sources)
    assert lines_of({"orders": TABLE, "out": TABLE}, flow)[2:] == ["d0 --> d1"]


def test_sources_from_outside_and_rows_that_are_kept_out():
    """Each has a box of its own, with a line."""
    flow = FlowEntry(
        name="t", target="t", streaming=True, sources=(read("topic", streaming=True, kind=SourceKind.KAFKA),)
    )
    assert lines_of({"t": TABLE}, flow, quarantine=("t",)) == [
        'd0[("t")]', 'qd0[("t_quarantine")]', 's0[/"kafka: topic"/]', "d0 -. kept out .-> qd0", "s0 --> d0",
    ]  # fmt: skip
