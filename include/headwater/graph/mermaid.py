"""The manifest as a picture: Mermaid text."""

from __future__ import annotations

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import FlowEntry, Manifest, SourceEntry

_SHAPES = {
    DatasetKind.STREAMING_TABLE: ('[("', '")]'),
    DatasetKind.MATERIALIZED_VIEW: ('[["', '"]]'),
    DatasetKind.TEMPORARY_VIEW: ('(["', '"])'),
    DatasetKind.TABLE: ('["', '"]'),
    DatasetKind.SINK: ('>"', '"]'),
}


def mermaid(manifest: Manifest) -> str:
    """The graph as Mermaid text: cylinders are streaming tables, double boxes materialized views, round views,
    flags sinks.

    A full line is read as a stream, a dotted one as a whole.
    """
    ids = {entry.name: f"d{number}" for number, entry in enumerate(manifest.datasets)}
    lines = ["flowchart LR"]
    for entry in manifest.datasets:
        opening, closing = _SHAPES[entry.kind]
        lines.append(f"    {ids[entry.name]}{opening}{_label(entry.name)}{closing}")
    kept_out = {entry.name: f"q{ids[entry.name]}" for entry in manifest.datasets if entry.quarantine}
    lines += [f'    {key}[("{_label(name)}_quarantine")]' for name, key in kept_out.items()]
    outside: dict[str, str] = {}
    edges: dict[str, None] = {}
    for flow in manifest.flows:
        target = ids.get(flow.target) or outside.setdefault(flow.target, f"s{len(outside)}")
        for source in flow.sources:
            if source.kind is not SourceKind.DATASET:
                start = outside.setdefault(_source_label(source), f"s{len(outside)}")
                edges[_edge(start, target, streaming=source.streaming)] = None
        for name in flow.inputs:
            start = ids.get(name) or outside.setdefault(name, f"s{len(outside)}")
            edges[_edge(start, target, streaming=_streams(flow, name))] = None
    lines += [f'    {key}[/"{_label(label)}"/]' for label, key in outside.items()]
    lines += [f"    {ids[name]} -. kept out .-> {key}" for name, key in kept_out.items()]
    return "\n".join([*lines, *edges])


def _edge(start: str, end: str, *, streaming: bool) -> str:
    return f"    {start} {'-->' if streaming else '-.->'} {end}"


def _streams(flow: FlowEntry, name: str) -> bool:
    named = [source.streaming for source in flow.sources if source.name == name]
    return any(named) if named else flow.streaming


def _source_label(source: SourceEntry) -> str:
    what = source.name or source.path or source.location or ""
    return f"{source.format or source.kind}: {what}" if what else source.format or str(source.kind)


def _label(text: str) -> str:
    return text.replace('"', "#quot;")
