"""Lineage in OpenLineage's naming: each table, topic and folder by its location.

Decision 0084.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlparse

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import ColumnEntry, DatasetEntry, FlowEntry, Manifest, SourceEntry
from headwater.storage.place import Place, is_s3, located

_SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class LineageNode:
    """Something that is read or written. ``namespace`` and ``name`` as OpenLineage spells them.

    ``dataset``: its name in the pipeline, empty for external ones. ``columns``: where they are known.
    """

    namespace: str
    name: str
    dataset: str = ""
    columns: tuple[ColumnEntry, ...] = ()


@dataclass(frozen=True)
class LineageEdges:
    """What some datasets of a pipeline are made of."""

    inputs: tuple[LineageNode, ...]
    outputs: tuple[LineageNode, ...]


def lineage_edges(
    manifest: Manifest, warehouse: Place, datasets: Collection[str] | None = None
) -> LineageEdges:
    """The inputs and outputs of some datasets, or of all; temporary views are looked through.

    A source whose place is not known (a JDBC table, a data source of one's own) is left out, as is a sink that is a
    function. The quarantine of a table is an output beside it. What is both read and written there is an output alone
    where all datasets are asked for.
    """
    selected = [d for d in manifest.outputs if datasets is None or d.name in datasets]
    outputs = {node: None for entry in selected for node in _written(entry, warehouse)}
    inputs = {
        node: None
        for entry in selected
        for flow in manifest.flows_into(entry.name)
        for node in _read(manifest, flow, warehouse)
    }
    inner = {(node.namespace, node.name) for node in outputs} if datasets is None else set()
    return LineageEdges(
        tuple(node for node in inputs if (node.namespace, node.name) not in inner), tuple(outputs)
    )


def _written(entry: DatasetEntry, warehouse: Place) -> Iterator[LineageNode]:
    if entry.location is not None:
        yield _table(located(warehouse, entry.location), entry)
        if entry.quarantine is not None:
            yield LineageNode("file", str(located(warehouse, entry.quarantine)))
    elif entry.kind is DatasetKind.SINK and entry.sink_format == "kafka":
        for topic in _topics(entry.sink_options.get("topic", "")):
            yield LineageNode(_broker(entry.sink_options), topic, entry.name, entry.columns)


def _read(manifest: Manifest, flow: FlowEntry, warehouse: Place) -> Iterator[LineageNode]:
    for source in flow.sources:
        if source.location is not None:
            own = next((d for d in manifest.datasets if d.location == source.location), None)
            path = located(warehouse, source.location)
            yield _table(path, own) if own is not None else LineageNode("file", str(path))
        elif source.kind is SourceKind.KAFKA:
            for topic in _topics(source.name or source.options.get("subscribe", "")):
                yield LineageNode(_broker(source.options), topic)
        elif source.kind in (SourceKind.FILES, SourceKind.DELTA) and source.path:
            yield _place(source)


def _table(path: Place, entry: DatasetEntry) -> LineageNode:
    return LineageNode("file", str(path), entry.name, entry.columns)


def _place(source: SourceEntry) -> LineageNode:
    if is_s3(source.path or ""):  # a question mark is a pattern there
        bucket, _, key = (source.path or "").removeprefix("s3://").partition("/")
        return LineageNode(f"s3://{bucket}", key or "/")
    url = urlparse(source.path or "")
    if url.scheme in ("", "file"):
        return LineageNode("file", unquote(url.path))
    return LineageNode(f"{url.scheme}://{url.netloc}", url.path.lstrip("/") or "/")


def _broker(options: dict[str, str]) -> str:
    servers = next((value for key, value in options.items() if key.lower() == _SERVERS), "")
    return f"kafka://{servers.partition(',')[0].strip() or 'unknown'}"


def _topics(text: str) -> list[str]:
    return [topic.strip() for topic in text.split(",") if topic.strip()]
